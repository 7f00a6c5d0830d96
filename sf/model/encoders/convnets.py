"""The encoders of images: convolutions, then linear layers."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
from torch import nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.model.encoders.blocks import Convolutional, ResidualBlock
from sf.model.encoders.images import ImageShape, PixelConv2d
from sf.model.layers import activation, channels_last, mlp, orthogonal
from sf.model.registry import register_encoder


@register_encoder("simple")
def simple(space: gym.spaces.Box, config: ModelConfig) -> ConvEncoder:
    """Three convolutions, as in the benchmarks of Petrenko et al. 2020 (Sample Factory)."""
    return ConvEncoder(space, config, [(32, 8, 4), (64, 4, 2), (128, 3, 2)])


@register_encoder("atari")
def atari(space: gym.spaces.Box, config: ModelConfig) -> ConvEncoder:
    """The network of Mnih et al. 2015."""
    return ConvEncoder(space, config, [(32, 8, 4), (64, 4, 2), (64, 3, 1)])


class ConvEncoder(Convolutional):
    """Convolutions (out_channels, kernel, stride), padded where `pad_images` says so, then linear layers."""

    def __init__(
        self, space: gym.spaces.Box, config: ModelConfig, convolutions: Sequence[tuple[int, int, int]]
    ) -> None:
        super().__init__()
        image = ImageShape.of(space)
        channels, height, width = image.channels, image.height, image.width
        layers: list[nn.Module] = []
        for out_channels, kernel, stride in convolutions:
            (height, rows), (width, columns) = (
                _windows(side, kernel, stride, config.pad_images) for side in (height, width)
            )
            if min(height, width) < 1:
                raise UsageError(
                    f"an image of {image.height}x{image.width} pixels is too small for the convolutions of this "
                    "encoder: render it larger, or take --encoder resnet or mlp"
                )
            convolution = (
                orthogonal(nn.Conv2d(channels, out_channels, kernel, stride, (rows, columns)))
                if layers
                else PixelConv2d(image, out_channels, kernel, stride, (rows, columns))
            )
            layers += [convolution, activation(config.nonlinearity)]
            channels = out_channels
        self.convolutions = channels_last(nn.Sequential(*layers))
        size, widths = channels * height * width, config.encoder_conv_mlp_layers
        self.linear, self.out_size = mlp(size, widths, config.nonlinearity, layer_norm=config.layer_norm)


def _windows(side: int, kernel: int, stride: int, pads: bool) -> tuple[int, int]:
    """How many a side of an image has, and the padding at either end of it: with `pads` the least with which they
    reach every pixel."""
    padding = next(zeros for zeros in range(stride) if (side + 2 * zeros - kernel) % stride <= zeros) if pads else 0
    return (side + 2 * padding - kernel) // stride + 1, padding


@register_encoder("resnet")
class ResnetEncoder(Convolutional):
    """The deep network of Espeholt et al. 2018 (IMPALA, figure 3): sections of 16, 32 and 32 channels."""

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        image = ImageShape.of(space)
        height, width, channels = image.height, image.width, 0
        layers: list[nn.Module] = []
        for out_channels in (16, 32, 32):
            first = (
                orthogonal(nn.Conv2d(channels, out_channels, 3, padding=1))
                if channels
                else PixelConv2d(image, out_channels, kernel=3, stride=1, padding=(1, 1))
            )
            layers += [first, nn.MaxPool2d(3, stride=2, padding=1)]
            layers += [ResidualBlock(out_channels, config.nonlinearity) for _ in range(2)]
            channels, height, width = out_channels, (height + 1) // 2, (width + 1) // 2
        layers.append(activation(config.nonlinearity))
        self.convolutions = channels_last(nn.Sequential(*layers))
        size, widths = channels * height * width, config.encoder_conv_mlp_layers
        self.linear, self.out_size = mlp(size, widths, config.nonlinearity, layer_norm=config.layer_norm)
