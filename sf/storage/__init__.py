"""Reads and writes the files of runs and of trained policies, and leaves none half written."""
