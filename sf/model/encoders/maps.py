"""The encoder of large maps: that of boards costs four times as much, and most of it is spent on empty cells."""

from __future__ import annotations

import gymnasium as gym
from torch import nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.planes import Planes
from sf.model.encoders.blocks import Convolutional, ScaledConv
from sf.model.layers import activation, channels_last, mlp, orthogonal
from sf.model.registry import register_encoder

_CHANNELS = (16, 32)  # of the first convolution, and of all others
_LARGEST_SIDE = 6  # cells that the linear layer sees


@register_encoder("map")
class MapEncoder(Convolutional):
    """Planes [N, C, H, W] -> [N, out_size]: convolutions of 3x3, each of which halves the sides, and linear layers."""

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(space, Planes):
            raise UsageError(
                f"observation {space} is no map, which is the space sf.envs.Planes: take --encoder auto or mlp"
            )
        channels, height, width = space.shape
        layers: list[nn.Module] = []
        while not layers or max(height, width) > _LARGEST_SIDE:
            out_channels = _CHANNELS[min(len(layers) // 2, 1)]
            scale = 1.0 if layers else space.scale
            layers += [orthogonal(ScaledConv(channels, out_channels, 2, scale)), activation(config.nonlinearity)]
            channels, height, width = out_channels, -(-height // 2), -(-width // 2)
        self.convolutions = channels_last(nn.Sequential(*layers))
        size = channels * height * width
        self.linear, self.out_size = mlp(
            size, config.encoder_conv_mlp_layers, config.nonlinearity, layer_norm=config.layer_norm
        )
