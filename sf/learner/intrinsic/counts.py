"""Counts observations: the bonus of one that has been seen N times is 1 / sqrt(N) (Bellemare et al. 2016)."""

from __future__ import annotations

from collections.abc import Mapping

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.learner.intrinsic.reward import IntrinsicReward
from sf.model.registry import register_intrinsic

_LOG2_SIZE = 20  # of the table: two observations share an entry with a probability of one in a million
_MOST_NUMBERS = 4_096
_SEED = 0


@register_intrinsic("count")
class Counts(IntrinsicReward):
    """Counts the hashes of observations, all keys together. Two are the same if all of their numbers are equal."""

    counts: Tensor

    def __init__(self, obs_space: gym.spaces.Dict, config: ModelConfig) -> None:
        """Raises UsageError for observations of many numbers, hardly any of which comes twice."""
        super().__init__()
        self._keys = list(obs_space)
        rng = np.random.default_rng(_SEED)
        for number, (key, box) in enumerate(obs_space.items()):
            assert isinstance(box, gym.spaces.Box)
            size = int(np.prod(box.shape))
            if size > _MOST_NUMBERS:
                raise UsageError(f"intrinsic is count, and observation {key!r} has {size:,} numbers: take rnd")
            factors = rng.integers(2**62, size=box.shape) * 2 + 1
            self.register_buffer(f"factors_{number}", torch.from_numpy(factors), persistent=False)
        self.register_buffer("counts", torch.zeros(2**_LOG2_SIZE))

    def bonus(self, obs: Mapping[str, Tensor]) -> Tensor:
        return self.counts[self._hashed(obs)].clamp(min=1).rsqrt()

    def learn(self, obs: Mapping[str, Tensor]) -> None:
        at = self._hashed(obs)
        self.counts.index_add_(0, at, torch.ones_like(at, dtype=self.counts.dtype))

    def _hashed(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Returns the entry of each observation, [N]: the upper bits of a sum of products (multilinear hashing,
        Lemire and Kaser 2014)."""
        total: Tensor | int = 0
        for number, key in enumerate(self._keys):
            factors: Tensor = getattr(self, f"factors_{number}")
            numbers = obs[key]
            if numbers.is_floating_point():
                numbers = (numbers.float() + 0.0).view(torch.int32)  # their bits; -0.0 becomes 0.0
            total = total + ((numbers.long() + 1) * factors).flatten(1).sum(1)
        assert isinstance(total, Tensor)
        return (total >> (63 - _LOG2_SIZE)) & (2**_LOG2_SIZE - 1)
