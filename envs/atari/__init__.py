"""Atari games, on the emulator ALE."""
