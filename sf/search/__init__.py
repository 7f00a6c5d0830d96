"""Searches games: trees of what may follow, guided by a policy or by random play."""
