"""Generalised advantage estimation (Schulman et al. 2016)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sf.learner.loss.masks import value_across


class GAE(NamedTuple):
    returns: Tensor  # [T, B] value targets: the lambda-return
    advantage: Tensor  # [T, B]


@torch.no_grad()
def gae(
    reward: Tensor,
    discount: Tensor,
    value: Tensor,
    valid: Tensor,
    acts: Tensor | None = None,
    *,
    lambda_: float | Tensor,
) -> GAE:
    """Advantages of T steps of B trajectories.

        delta_t   = r_t + discount_t V_{t+1} - V_t                                       (equation 12)
        A_t       = delta_t + discount_t lambda A_{t+1},  A_T = 0                        (equation 16)
        returns_t = V_t + A_t

    A step that is not valid (its action was ignored) has A = 0, and nothing goes through it: the step before
    it, which was truncated, is bootstrapped with the value of the final observation.

    Args:
        reward: [T, B].
        discount: [T, B], gamma, or 0 where the step terminated the episode.
        value: [T+1, B], in the scale of returns; the last row is the bootstrap value.
        valid: [T, B] bool.
        acts: [T+1, B] bool, see `sf.learner.loss.masks`: where it is false, V_t is r_t + discount_t V_{t+1}, and
            lambda is 1. None: true everywhere.

    Nothing that is returned carries gradients.
    """
    assert reward.ndim == 2, reward.shape
    assert reward.shape == discount.shape == valid.shape
    assert value.shape == (reward.shape[0] + 1, reward.shape[1]), value.shape
    trace: Tensor | float = lambda_
    if acts is not None:
        value = value_across(value, reward, discount, valid, acts)
        trace = torch.where(acts[:-1], lambda_, torch.ones_like(reward))
    delta = torch.where(valid, reward + discount * value[1:] - value[:-1], 0.0)
    decay = torch.where(valid, discount * trace, 0.0)
    advantage = torch.zeros_like(value)
    for t in range(len(delta) - 1, -1, -1):
        torch.addcmul(delta[t], decay[t], advantage[t + 1], out=advantage[t])
    return GAE(value[:-1] + advantage[:-1], advantage[:-1])
