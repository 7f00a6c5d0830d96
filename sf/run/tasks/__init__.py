"""Decides which tasks the groups of environments of a run have."""
