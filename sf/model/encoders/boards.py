"""The encoders of boards, grids and large maps, whose neighbouring cells belong together: small convolutions.

The encoder of boards costs four times as much as that of maps, and on a large map most of it is spent on empty cells.
"""

from __future__ import annotations

import gymnasium as gym
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.planes import Planes
from sf.envs.spaces.symbol_grids import grid_shape, is_float_board
from sf.model.encoders.blocks import Convolutional, ResidualBlock, ScaledConv
from sf.model.layers import activation, channels_last, head_of_images, orthogonal
from sf.model.registry import register_encoder

_CONV_CHANNELS = 32
_MIN_CONVOLUTIONS = 2
_RESIDUAL_BLOCKS = 2
_LARGEST_SIDE = 12  # cells that the linear layer sees; a convolution with stride 2 halves what is more


def board_layers(
    channels: int, height: int, width: int, config: ModelConfig
) -> tuple[nn.Sequential, nn.Sequential, int]:
    """Convolutions of 3x3 that keep the size of boards up to 12 cells a side, linear layers, and their `out_size`."""
    layers, height, width = _convolutions(channels, height, width, config, _MIN_CONVOLUTIONS)
    return channels_last(nn.Sequential(*layers)), *head_of_images(_CONV_CHANNELS * height * width, config)


def _convolutions(
    channels: int, height: int, width: int, config: ModelConfig, at_least: int, scale: float = 1.0
) -> tuple[list[nn.Module], int, int]:
    """As many as it takes, each with an activation behind it, and the size of what they give."""
    layers: list[nn.Module] = []
    while len(layers) < 2 * at_least or max(height, width) > _LARGEST_SIDE:
        stride = (2 if height > _LARGEST_SIDE else 1, 2 if width > _LARGEST_SIDE else 1)
        convolution = ScaledConv(channels, _CONV_CHANNELS, stride, 1.0 if layers else scale)
        layers += [orthogonal(convolution), activation(config.nonlinearity)]
        channels = _CONV_CHANNELS
        height, width = -(-height // stride[0]), -(-width // stride[1])
    return layers, height, width


@register_encoder("planes")
class PlanesEncoder(Convolutional):
    """Planes [N, C, H, W], or a board of floats with its channels first or last -> [N, out_size].

    The numbers go as they are through residual blocks and linear layers.
    """

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(space, Planes) and not is_float_board(space):
            raise UsageError(
                "encoder is planes, which reads sf.envs.Planes and bounded float32 Boxes of rank 3, but the "
                f"observation is {space}: use --encoder auto or mlp"
            )
        scale = space.scale if isinstance(space, Planes) else 1.0
        grid = grid_shape(space.shape)
        self._channels_trail = grid.channels_trail and not isinstance(space, Planes)
        channels, height, width = space.shape if isinstance(space, Planes) else grid[:3]
        layers, height, width = _convolutions(channels, height, width, config, 1, scale)
        blocks = [
            ResidualBlock(_CONV_CHANNELS, config.nonlinearity, begins_as_identity=True) for _ in range(_RESIDUAL_BLOCKS)
        ]
        # Each block begins with an activation, so none comes before the first.
        layers = [*layers[:-1], *blocks, activation(config.nonlinearity)]
        self.convolutions = channels_last(nn.Sequential(*layers))
        self.linear, self.out_size = head_of_images(_CONV_CHANNELS * height * width, config)

    def forward(self, board: Tensor) -> Tensor:
        return super().forward(board.permute(0, 3, 1, 2) if self._channels_trail else board)


_MAP_CHANNELS = (16, 32)  # of the first convolution, and of all others
_LARGEST_SIDE_OF_MAP = 6  # cells that the linear layer sees


@register_encoder("map")
class MapEncoder(Convolutional):
    """Planes [N, C, H, W] -> [N, out_size]: convolutions of 3x3, each of which halves the sides, and linear layers."""

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(space, Planes):
            raise UsageError(
                f"encoder is map, which reads sf.envs.Planes, but the observation is {space}: use --encoder auto or mlp"
            )
        channels, height, width = space.shape
        layers: list[nn.Module] = []
        while not layers or max(height, width) > _LARGEST_SIDE_OF_MAP:
            out_channels = _MAP_CHANNELS[min(len(layers) // 2, 1)]
            scale = 1.0 if layers else space.scale
            layers += [orthogonal(ScaledConv(channels, out_channels, 2, scale)), activation(config.nonlinearity)]
            channels, height, width = out_channels, -(-height // 2), -(-width // 2)
        self.convolutions = channels_last(nn.Sequential(*layers))
        self.linear, self.out_size = head_of_images(channels * height * width, config)
