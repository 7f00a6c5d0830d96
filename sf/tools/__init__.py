"""The commands, one folder for each. Nothing here is used by a run."""
