"""Implements the commands. Nothing here is used by a run."""
