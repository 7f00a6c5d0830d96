"""Answers requests: one process infers actions for many environments at once."""
