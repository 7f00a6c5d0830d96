"""Commands to a whole side, or to all of its units of one kind."""
