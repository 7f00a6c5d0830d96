"""From gradients to weights: the optimisers, and the learning rate that all of them share."""
