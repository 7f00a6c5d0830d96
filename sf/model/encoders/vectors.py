"""The encoder of vectors, and of anything that is to be flattened."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.model.layers import compute_dtype, mlp
from sf.model.registry import register_encoder


@register_encoder("mlp")
class MlpEncoder(nn.Module):
    """Linear layers on the flattened observation. Pixels as uint8 are divided by 255."""

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        size, widths = int(np.prod(space.shape)), config.encoder_mlp_layers
        self.linear, self.out_size = mlp(
            size,
            widths,
            config.nonlinearity,
            layer_norm=config.layer_norm,
            num_residual=config.encoder_mlp_residual,
        )

    def forward(self, obs: Tensor) -> Tensor:
        x = obs.flatten(1)
        if x.dtype == torch.uint8:
            x = x * (1 / 255)
        weight = next(self.linear.parameters(), None)
        return x if weight is None else self.linear(x.to(compute_dtype(weight)))
