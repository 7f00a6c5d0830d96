"""Answers requests for actions: each process computes them for many environments at once."""
