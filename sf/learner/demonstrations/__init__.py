"""Demonstrations in the learner: the trajectories that they are read as, and training on them before a run begins."""
