"""Encoders: from one observation [N, ...] to features [N, out_size], and which observation gets which."""
