"""Moves what a policy has learned into another network: other observations, actions or layers, the same function."""
