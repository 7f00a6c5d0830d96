"""V-trace (Espeholt et al. 2018, IMPALA): value targets and advantages from off-policy trajectories."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sf.learner.loss.masks import value_across


class VTrace(NamedTuple):
    vs: Tensor  # [T, B] value targets
    advantage: Tensor  # [T, B], not weighted: PPO's surrogate has the ratio in it, the plain gradient is to weight it


@torch.no_grad()
def vtrace(
    log_rho: Tensor,
    reward: Tensor,
    discount: Tensor,
    value: Tensor,
    valid: Tensor,
    acts: Tensor | None = None,
    *,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    lambda_: float | Tensor = 1.0,
) -> VTrace:
    """V-trace targets of T steps of B trajectories.

        rho_t   = exp(log_rho_t)
        delta_t = min(rho_bar, rho_t) (r_t + discount_t V_{t+1} - V_t)
        c_t     = lambda min(c_bar, rho_t)
        vs_t    = V_t + delta_t + discount_t c_t (vs_{t+1} - V_{t+1}),  vs_T = V_T      (equation 1)
        A_t     = r_t + discount_t ((1 - lambda) V_{t+1} + lambda vs_{t+1}) - V_t

    With lambda = 1, A is the estimate of section 4.2; with any lambda it is that of rlax, which becomes GAE
    where both policies are the same.

    A step that is not valid (its action was ignored) has vs = V and A = 0: no trace goes through it. So the
    step before it, which was truncated, gets the target r + discount V(final observation).

    Args:
        log_rho: [T, B], log-probability of the action: target policy's less behaviour policy's.
        reward: [T, B].
        discount: [T, B], gamma, or 0 where the step terminated the episode.
        value: [T+1, B], in the scale of returns; the last row is the bootstrap value.
        valid: [T, B] bool.
        acts: [T+1, B] bool, see `sf.learner.loss.masks`: where it is false, V_t is r_t + discount_t V_{t+1}, and
            c_t is 1. None: true everywhere.

    Nothing that is returned carries gradients.
    """
    assert log_rho.ndim == 2, log_rho.shape
    assert log_rho.shape == reward.shape == discount.shape == valid.shape
    assert value.shape == (log_rho.shape[0] + 1, log_rho.shape[1]), value.shape
    rho = torch.where(valid, log_rho, 0.0).exp()
    trace = lambda_ * rho.clamp(max=c_bar)
    if acts is not None:
        value = value_across(value, reward, discount, valid, acts)
        trace = torch.where(acts[:-1], trace, 1.0)
    clipped_rho = rho.clamp(max=rho_bar)
    next_value = value[1:]
    delta = torch.where(valid, clipped_rho * (reward + discount * next_value - value[:-1]), 0.0)
    decay = torch.where(valid, discount * trace, 0.0)

    error = torch.zeros_like(value)  # vs - V
    for t in range(len(delta) - 1, -1, -1):
        torch.addcmul(delta[t], decay[t], error[t + 1], out=error[t])

    q = reward + discount * (next_value + lambda_ * error[1:])
    advantage = torch.where(valid, q - value[:-1], 0.0)
    return VTrace(value[:-1] + error[:-1], advantage)
