"""The policy's term of the loss: PPO's clipped surrogate (Schulman et al. 2017, equation 7) or the plain gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sf.learner.loss.terms.term import LossTerm, Samples, total

# exp(20) is 5e8: far beyond any ratio that still teaches something, and far from overflow.
_MAX_LOG_RATIO = 20.0


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    settings, mean, advantage = samples.settings, samples.mean_of_chosen, samples.advantage
    log_ratio = _log_ratio(samples.log_prob, samples.proximal_log_prob)
    ratio = log_ratio.exp()
    high: Any = 1 + settings.clip_ratio  # a float, or a tensor
    low = 1 / high
    if settings.with_ppo_clip:
        weight = _log_ratio(samples.proximal_log_prob, samples.behaviour_log_prob).exp()
        weight = weight.clamp(max=max(1.0, settings.rho_bar))
        value = -mean(weight * torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage))
    else:
        value = -mean(samples.log_prob * advantage)
    with torch.no_grad():
        behaviour_ratio = _log_ratio(samples.log_prob, samples.behaviour_log_prob).exp()
        return value, {
            "approx_kl": mean(log_ratio.expm1() - log_ratio),  # ratio - 1 loses the digits of a small update
            "ratio": mean(behaviour_ratio),
            "squared_ratio": mean(behaviour_ratio.square()),
            "clip_fraction": mean(((ratio < low) | (ratio > high)).to(ratio.dtype)),
        }


def _log_ratio(log_prob: Tensor, other: Tensor) -> Tensor:
    return (log_prob - other).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


POLICY = LossTerm(
    "policy",
    _compute,
    metrics={
        "policy_loss": total("value"),
        "approx_kl": total("approx_kl"),  # of the target from the proximal policy: never negative
        "ratio_mean": total("ratio"),  # of target to behaviour policy
        "clip_fraction": total("clip_fraction"),  # share whose ratio of target to proximal policy is out of the range
        # (sum x)^2 / sum x^2, x = target / behaviour, as a share of samples: 1 on-policy
        "effective_sample_size": lambda of_all: of_all["ratio"].square() / of_all["squared_ratio"].clamp(min=1e-8),
    },
    coefficient="policy_loss_coeff",
)
