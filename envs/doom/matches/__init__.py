"""Matches of Doom: the engines of several agents, joined in one network game, and the engine's own bots."""
