"""The critic's clock: its value depends on how many steps the episode has lasted, and the policy does not.

The critic knows more than the policy as in asymmetric actor-critic (Pinto et al. 2018); that it is the time follows
Pardo et al. 2018, for tasks that end by a time limit.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sf.envs.clock import CLOCK
from sf.model.layers import activation, orthogonal
from sf.model.normalizers import VectorNormalizer


class CriticClock(nn.Module):
    """One layer that joins the critic's features with the time."""

    def __init__(self, num_features: int, nonlinearity: str) -> None:
        super().__init__()
        self.norm = VectorNormalizer((1,))
        self.layer = orthogonal(nn.Linear(num_features + 1, num_features))
        self.activation = activation(nonlinearity)

    def forward(self, features: Tensor, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [M, F] and observations {key: [M, ...]} -> [M, F]. Where nobody counts, it is time 0."""
        clock = obs.get(CLOCK)
        if clock is None:
            clock = features.new_zeros(features.shape[0], 1)
        time = self.norm(clock, torch.float32).to(features.dtype)
        joined: Tensor = self.activation(self.layer(torch.cat((features, time), dim=-1)))
        return joined

    def update(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} where `mask` [T, B] holds."""
        self.norm.update(obs[CLOCK].flatten(0, 1), mask.flatten())
