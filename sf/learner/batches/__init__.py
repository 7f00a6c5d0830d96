"""From filled slots to minibatches: the only place where the axes of a trajectory are swapped."""
