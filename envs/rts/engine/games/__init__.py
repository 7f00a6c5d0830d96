"""The games: each is how it begins, what happens in a tick beside orders, and how it ends."""
