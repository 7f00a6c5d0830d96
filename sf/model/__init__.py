"""The network: encoders, the recurrent core, the heads, and how they are found by name."""
