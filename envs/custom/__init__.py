"""Environments of the user's own: by `module:Name`, or by a name that is registered."""
