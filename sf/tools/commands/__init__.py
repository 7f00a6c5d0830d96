"""One module for each command, and how all of them end."""
