"""The kinds of children, a module each, and what is said of any kind."""
