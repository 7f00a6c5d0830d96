"""Defines the tables, slots and queues in shared memory by which the processes of a run work together.

Nothing here is used by one process alone.
"""
