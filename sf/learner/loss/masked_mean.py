"""Means over the samples of a minibatch: every number that a loss takes over several samples is one of these."""

from __future__ import annotations

import torch
from torch import Tensor


class MaskedMean:
    """The mean of the numbers for which `mask` holds; 0 where it holds for none.

    num_samples: 0-dim, for how many it holds.
    """

    def __init__(self, mask: Tensor, dtype: torch.dtype) -> None:
        """mask: [T, B] bool. dtype: of the numbers."""
        self._mask = mask
        self.num_samples = mask.sum().to(dtype)

    def __call__(self, numbers: Tensor) -> Tensor:
        """[T, B] -> 0-dim. The other numbers get no gradient."""
        return torch.where(self._mask, numbers, 0.0).sum() / self.num_samples.clamp(min=1)
