"""A small piece of an iteration is tried before the first: how long it takes, and whether the network works."""
