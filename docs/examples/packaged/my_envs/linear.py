"""Registers an encoder when it is imported; in a module of its own, since rollout workers need no torch."""

import math

from torch import nn

from sf import register_encoder


@register_encoder("my_linear")
class Linear(nn.Module):
    """One layer."""

    def __init__(self, space, config):
        super().__init__()
        self.out_size = 32
        self.layer = nn.Linear(math.prod(space.shape), self.out_size)

    def forward(self, obs):  # [N, ...] -> [N, 32]
        return self.layer(obs.flatten(1))
