"""Computes the metrics of a run, writes them to files and trackers, and displays them."""
