"""Metrics of a run, where they are written, and the display."""
