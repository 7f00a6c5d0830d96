"""Reads and writes the files of runs, trained policies and demonstrations, and leaves none half written."""
