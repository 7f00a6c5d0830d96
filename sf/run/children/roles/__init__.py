"""The kinds of children of a run, a module each, and the table of them."""
