"""Turns filled slots into new weights: it makes batches, computes targets and losses, optimises, and saves."""
