"""Environments of other libraries, by the names that they have there."""
