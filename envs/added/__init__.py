"""Observations that the trainer adds to those of an environment: the time, the state, and who an agent is."""
