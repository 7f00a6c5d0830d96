"""Computes what values learn from a game that has ended: its outcome, or a mixture with the roots of later searches."""

from __future__ import annotations

import numpy as np


def game_targets(
    reward: np.ndarray, value: np.ndarray, acts: np.ndarray, *, gamma: float, lambda_: float
) -> np.ndarray:
    """Returns [N] float32 targets of all rows of a game, for the agent whose rows these are.

        G_t = r_t + gamma ((1 - lambda) V_{t+1} + lambda G_{t+1}),  G_N = V_N = 0

    This is TD(lambda) (Sutton and Barto 2018, equation 12.2, from the end of the episode back). Where an agent waits,
    lambda is 1 and V_t is r_t + gamma V_{t+1}, as in `sf.learner.loss.gae`. lambda 1 is the discounted outcome.

    Args:
        reward: [N], of each row until the last one, which ends the game.
        value: [N], of the roots, in the unit of the rewards; that of an agent that waits is not read.
        acts: [N] bool, whether the agent chooses.
    """
    assert reward.ndim == 1, reward.shape
    assert reward.shape == value.shape == acts.shape, (reward.shape, value.shape, acts.shape)
    targets = np.empty(len(reward), np.float64)
    following = value_following = 0.0
    for t in range(len(reward) - 1, -1, -1):
        trace = lambda_ if acts[t] else 1.0
        waited = float(reward[t]) + gamma * value_following
        targets[t] = following = float(reward[t]) + gamma * ((1 - trace) * value_following + trace * following)
        value_following = float(value[t]) if acts[t] else waited
    return targets.astype(np.float32)
