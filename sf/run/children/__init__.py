"""The children of a run: a module for each kind, and how they all are started, watched and replaced."""
