"""Games in the learner: how slots become games, the buffer that keeps them, and the batches that are drawn from it."""
