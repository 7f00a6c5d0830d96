"""Images: what counts as one, where its channels are, and their encoders, convolutions and then linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.observations import is_image
from sf.envs.spaces.symbol_grids import grid_shape
from sf.model.encoders.blocks import Convolutional, ResidualBlock
from sf.model.layers import activation, channels_last, compute_dtype, head_of_images, orthogonal
from sf.model.registry import register_encoder


@dataclass(frozen=True)
class ImageShape:
    """Channels, height and width; in memory (H, W, C) where the channels trail, else (C, H, W)."""

    channels: int
    height: int
    width: int
    channels_trail: bool

    @classmethod
    def of(cls, space: gym.spaces.Box) -> ImageShape:
        """Raises ValueError where `space` is not an image."""
        if not is_image(space):
            raise UsageError(
                f"this encoder reads images, uint8 of rank 3, but the observation is {space}: use --encoder mlp or auto"
            )
        channels, height, width, trail, _ = grid_shape(space.shape)
        return cls(channels, height, width, trail)


class PixelConv2d(nn.Module):
    """A convolution of images [N, H, W, C] or [N, C, H, W], of which uint8 is divided by 255. Gives [N, out, H', W'].

    Two things make it cheaper than the plain convolution, with the same result:
    - 1/255 goes into the few weights instead of the many pixels (which bfloat16 holds exactly up to 256).
    - In memory, a row of W pixels with C channels is a row of W/s pixels with s x C channels. So a kernel of
      width k and stride s is one of width k/s and stride 1, with channels enough to fill the vector units.

    padding: rows above and below, and columns left and right, of zeros.
    """

    def __init__(
        self, image: ImageShape, out_channels: int, kernel: int, stride: int, padding: tuple[int, int] = (0, 0)
    ) -> None:
        super().__init__()
        self.weight = orthogonal(nn.Conv2d(image.channels, out_channels, kernel)).weight
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.image, self.padding = image, padding
        self.fold = stride if kernel % stride == 0 else 1  # pixels of a row that become one
        self.strides = (stride, stride // self.fold)

    def forward(self, pixels: Tensor) -> Tensor:
        dtype = compute_dtype(self.weight)
        if not self.image.channels_trail:
            pixels = pixels.permute(0, 2, 3, 1)
        (rows, columns), is_folded = self.padding, self.fold > 1
        if is_folded and (rows or columns):
            pixels = F.pad(pixels, (0, 0, columns, columns, rows, rows))
        n, height, width, channels = pixels.shape
        width -= width % self.fold  # no window reaches the rest: the kernel is a multiple of fold
        x = pixels[:, :, :width].to(dtype, memory_format=torch.contiguous_format).contiguous()
        x = x.view(n, height, width // self.fold, self.fold * channels)
        out, _, kernel, _ = self.weight.shape
        weight = self.weight.permute(0, 2, 3, 1).reshape(out, kernel, kernel // self.fold, -1)
        weight = (weight * (1 / 255) if pixels.dtype == torch.uint8 else weight).to(dtype)
        return F.conv2d(
            x.permute(0, 3, 1, 2),
            weight.permute(0, 3, 1, 2),
            self.bias.to(dtype),
            stride=self.strides,
            padding=0 if is_folded else self.padding,
        )


@register_encoder("simple")
def simple(space: gym.spaces.Box, config: ModelConfig) -> ConvEncoder:
    """Three convolutions, as in the benchmarks of Petrenko et al. 2020 (Sample Factory)."""
    return ConvEncoder(space, config, [(32, 8, 4), (64, 4, 2), (128, 3, 2)])


@register_encoder("atari")
def atari(space: gym.spaces.Box, config: ModelConfig) -> ConvEncoder:
    """The network of Mnih et al. 2015."""
    return ConvEncoder(space, config, [(32, 8, 4), (64, 4, 2), (64, 3, 1)])


@register_encoder("small")
def small(space: gym.spaces.Box, config: ModelConfig) -> ConvEncoder:
    """Three convolutions for images of about 32 pixels a side: a tenth of the time of `resnet`."""
    return ConvEncoder(space, config, [(16, 4, 2), (32, 3, 2), (32, 3, 2)])


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
        self.linear, self.out_size = head_of_images(channels * height * width, config)


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
        self.linear, self.out_size = head_of_images(channels * height * width, config)
