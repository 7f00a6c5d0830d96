"""Plays episodes with policies and other players, and measures, films or shows them."""
