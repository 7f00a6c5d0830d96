"""Provides what any parallel program needs: processes, messages, cores, shared arrays, compiled code and GPUs.

Nothing here knows of reinforcement learning.
"""
