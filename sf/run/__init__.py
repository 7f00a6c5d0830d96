"""The parent: it allocates, starts, watches and replaces the processes of a run."""
