"""Scores of a policy, and videos: episodes played by processes of their own, and their statistics."""
