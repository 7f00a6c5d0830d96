"""Slots to weights: batches, targets, losses, the optimiser, and what a successor goes on with."""
