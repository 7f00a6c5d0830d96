"""Spaces of observations and of actions: what of them can be trained on, and how."""
