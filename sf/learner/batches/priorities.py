"""Trajectories drawn by their advantages: prioritized experience replay (Schaul et al. 2016) within an iteration."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_LEAST = 0.01  # of the mean size: is added to each, so that no trajectory with samples is left out


class Priorities(NamedTuple):
    """Of trajectories; each [B]."""

    probability: Tensor  # of being drawn; the sum of all is 1
    weight: Tensor  # in the loss, which makes up for being drawn more often than others


@torch.no_grad()
def priorities(advantage: Tensor, mask: Tensor, *, alpha: float, beta: float) -> Priorities:
    """Of B trajectories with advantages [T, B], of which the samples where `mask` [T, B] holds count.

        p_i  = mean |A| of trajectory i + 0.01 mean p
        P(i) = p_i^alpha / sum_k p_k^alpha                                               (equation 1)
        w_i  = (B P(i))^-beta                                                            (section 3.4)

    Where p_i has a share of the mean, the paper's has a small constant: so the scale of rewards does not matter. A
    trajectory without samples is never drawn. If all advantages are 0, all trajectories are alike.
    """
    assert advantage.ndim == 2, advantage.shape
    assert advantage.shape == mask.shape, (advantage.shape, mask.shape)
    num_samples = mask.sum(0)
    size = torch.where(mask, advantage.abs(), 0.0).sum(0) / num_samples.clamp(min=1)
    size = size.nan_to_num(0.0, posinf=0.0)  # a step that draws it is skipped
    has_samples = num_samples > 0
    least = _LEAST * size.sum() / has_samples.sum().clamp(min=1)
    power = torch.where(has_samples, (size + least) ** alpha, 0.0)
    power = torch.where(size.sum() > 0, power, 1.0)
    probability = power / power.sum()
    weight = torch.where(probability > 0, (len(size) * probability) ** -beta, 0.0)
    return Priorities(probability, weight)


def draw(probability: Tensor, uniform: Tensor) -> Tensor:
    """Indices [M] with such probabilities [B], independent of each other. uniform: [M] float64, from 0 to below 1."""
    up_to = probability.double().cumsum(0)
    index = torch.searchsorted(up_to, uniform * up_to[-1], right=True)
    return index.clamp(max=len(probability) - 1)
