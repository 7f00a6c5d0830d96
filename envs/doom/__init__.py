"""Doom tasks, played by ViZDoom: scenarios with one player here, matches in a folder of their own."""
