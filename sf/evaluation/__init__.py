"""Scores of a policy: episodes played by processes of their own, and their statistics."""
