"""Players that know the state of a game: they search it, or hand it to a program."""
