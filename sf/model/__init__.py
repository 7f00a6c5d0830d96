"""Defines the network: the encoders, the recurrent core, the heads, and the registry that finds them by name."""
