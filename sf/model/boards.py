"""Small convolutions for boards and grids, whose neighbouring cells belong together, and the encoder of `Planes`."""

from __future__ import annotations

import gymnasium as gym
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.planes import Planes
from sf.model.layers import activation, channels_last, mlp, orthogonal
from sf.model.registry import register_encoder

_CONV_CHANNELS = 32
_MIN_CONVOLUTIONS = 2
_LARGEST_SIDE = 12  # cells that the linear layer sees; a convolution with stride 2 halves what is more


def board_layers(
    channels: int, height: int, width: int, config: ModelConfig
) -> tuple[nn.Sequential, nn.Sequential, int]:
    """Convolutions of 3x3 that keep the size of a board of up to 12 cells a side, linear layers, and their `out_size`.

    `encoded` applies them to [N, C, H, W].
    """
    layers: list[nn.Module] = []
    while len(layers) < 2 * _MIN_CONVOLUTIONS or max(height, width) > _LARGEST_SIDE:
        stride = (2 if height > _LARGEST_SIDE else 1, 2 if width > _LARGEST_SIDE else 1)
        layers += [orthogonal(nn.Conv2d(channels, _CONV_CHANNELS, 3, stride, padding=1))]
        layers += [activation(config.nonlinearity)]
        channels = _CONV_CHANNELS
        height, width = -(-height // stride[0]), -(-width // stride[1])
    convolutions = channels_last(nn.Sequential(*layers))
    size, widths = channels * height * width, config.encoder_conv_mlp_layers
    return convolutions, *mlp(size, widths, config.nonlinearity, layer_norm=config.layer_norm)


def encoded(board: Tensor, convolutions: nn.Module, linear: nn.Module) -> Tensor:
    """[N, C, H, W] -> [N, out_size]"""
    x = convolutions(board)
    return linear(x.permute(0, 2, 3, 1).flatten(1))  # the memory is channels_last: no copy


@register_encoder("planes")
class PlanesEncoder(nn.Module):
    """Planes [N, C, H, W] -> [N, out_size], as they are."""

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(space, Planes):
            raise UsageError(
                f"observation {space} is no board, which is the space sf.envs.Planes: take --encoder auto or mlp"
            )
        channels, height, width = space.shape
        self.convolutions, self.linear, self.out_size = board_layers(channels, height, width, config)

    def forward(self, planes: Tensor) -> Tensor:
        return encoded(planes, self.convolutions, self.linear)
