"""Ranks: learners of one policy, each with its own samples, that train as one."""
