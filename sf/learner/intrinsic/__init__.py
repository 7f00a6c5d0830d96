"""Gives policies rewards for what they have not seen before."""
