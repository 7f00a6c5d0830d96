"""The children of a run: how they all are started, watched and replaced."""
