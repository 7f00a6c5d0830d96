"""Trains one policy on several environments: the files that name them, their spaces as one, and their scores."""
