"""Starts the runs of a sweep or a search on this machine, or as jobs of a cluster."""
