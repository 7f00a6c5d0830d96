"""Means over the samples of a minibatch: every number that a loss takes over several samples is one of these."""

from __future__ import annotations

import torch
from torch import Tensor

_LEAST_WEIGHT = 1e-30  # of all samples together: gradients of 0 x NaN would be NaN


class MaskedMean:
    """The mean of the numbers for which `mask` holds; 0 where it holds for none.

    num_samples: 0-dim, for how many it holds.
    """

    def __init__(self, mask: Tensor, dtype: torch.dtype, weight: Tensor | None = None) -> None:
        """mask: [T, B] bool. dtype: of the numbers. weight: [T, B], of each in the mean; None: all have the same."""
        self._mask = mask
        self.num_samples = mask.sum().to(dtype)
        self._weight = weight
        if weight is not None:
            total = torch.where(mask, weight, 0.0).sum()
            self._weight = weight * (self.num_samples / total.clamp(min=_LEAST_WEIGHT))

    def __call__(self, numbers: Tensor) -> Tensor:
        """[T, B] -> 0-dim. The other numbers get no gradient."""
        if self._weight is not None:
            numbers = numbers * self._weight
        return torch.where(self._mask, numbers, 0.0).sum() / self.num_samples.clamp(min=1)
