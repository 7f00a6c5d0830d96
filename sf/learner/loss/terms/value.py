"""The critic's term of the loss: the squared error of the values, clipped as PPO's surrogate is."""

from __future__ import annotations

import torch
from torch import Tensor

from sf.learner.loss.terms.term import LossTerm, Samples, Totals, total

_LEAST_VARIATION = 0.02  # of value targets: their standard deviation as a share of their size


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    value, target, mean, clip_value = samples.value, samples.value_target, samples.mean, samples.settings.clip_value
    squared_error = (value - target).square()
    move = value - samples.behaviour_value
    if clip_value > 0:
        clipped = samples.behaviour_value + move.clamp(-clip_value, clip_value)
        squared_error = torch.maximum(squared_error, (clipped - target).square())
    loss = mean(squared_error)
    with torch.no_grad():
        from_zero, residual = (x.double() for x in (target - samples.zero_return, target - value))
        return loss, {
            "clip_fraction": mean((move.abs() > clip_value).to(value.dtype) if clip_value > 0 else value * 0),
            "target": mean(from_zero),  # less that of a return of 0
            "squared_target": mean(from_zero.square()),
            "residual": mean(residual),
            "squared_residual": mean(residual.square()),
        }


def _explained_variance(of_all: Totals) -> Tensor:
    """Returns 1 - Var(target - value) / Var(target), or NaN if the targets barely vary."""
    target_variance = of_all["squared_target"] - of_all["target"].square()
    residual_variance = of_all["squared_residual"] - of_all["residual"].square()
    return torch.where(
        target_variance > _LEAST_VARIATION**2 * of_all["squared_target"],
        1 - residual_variance / target_variance.clamp(min=1e-30),
        torch.nan,
    ).to(of_all["value"].dtype)


VALUE = LossTerm(
    "value",
    _compute,
    metrics={
        "value_loss": total("value"),
        "value_clip_fraction": total("clip_fraction"),  # share whose value moved further than clip_value
        "explained_variance": _explained_variance,
    },
    coefficient="value_loss_coeff",
)
