"""Images: what counts as one, where its channels are, and the convolution that takes raw pixels."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.envs.errors import UsageError
from sf.envs.spaces.observations import channels_trail, is_image
from sf.model.layers import compute_dtype, orthogonal


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
                f"observation {space} is not an image, which is uint8 of rank 3: take --encoder mlp or auto"
            )
        first, middle, last = space.shape
        if channels_trail(space.shape):
            return cls(channels=last, height=first, width=middle, channels_trail=True)
        return cls(channels=first, height=middle, width=last, channels_trail=False)


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
