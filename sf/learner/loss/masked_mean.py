"""Means over the samples of a minibatch: every number that a loss takes over several samples is one of these."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sf.ranks.ranks import Ranks

_LEAST_WEIGHT = 1e-30  # of all samples together: gradients of 0 x NaN would be NaN


class MaskedMean:
    """The mean of the numbers for which `mask` holds; 0 where it holds for none.

    With several ranks it is the mean over the samples of all, and a call gives the part of this one: its sum divided by
    the weight of all. So the parts of all ranks add up to the mean, and so do their gradients. It needs `share_out`.

    num_samples: 0-dim, for how many it holds.
    """

    def __init__(self, mask: Tensor, dtype: torch.dtype, weight: Tensor | None = None) -> None:
        """mask: [T, B] bool. dtype: of the numbers. weight: [T, B], of each in the mean; None: all have the same."""
        self._mask = mask
        self._weight = weight
        self.num_samples = mask.sum().to(dtype)
        self.total_weight = self.num_samples if weight is None else torch.where(mask, weight, 0.0).sum()

    def sum(self, numbers: Tensor) -> Tensor:
        """[T, B] -> 0-dim, with the weight of each, over the samples of this rank."""
        if self._weight is not None:
            numbers = numbers * self._weight
        return torch.where(self._mask, numbers, 0.0).sum()

    def __call__(self, numbers: Tensor) -> Tensor:
        """[T, B] -> 0-dim. The other numbers get no gradient."""
        return self.sum(numbers) / self.total_weight.clamp(min=_LEAST_WEIGHT)


def share_out(ranks: Ranks, means: Sequence[MaskedMean]) -> None:
    """Make these the means over the samples of all ranks."""
    of_all = iter(ranks.totals(*(number for mean in means for number in (mean.num_samples, mean.total_weight))))
    for mean in means:
        mean.num_samples, mean.total_weight = next(of_all), next(of_all)
