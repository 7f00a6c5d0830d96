"""The blocks that encoders with convolutions share, which take many images on a CPU in parts.

Its caches hold a part from one layer to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from sf.model.layers import activation, orthogonal

_PART = 8 * 2**20  # numbers that are encoded at once: see benchmarks/README.md


def in_parts(encode: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """What `encode` makes of rows [N, ...], each for itself: [N, ...]."""
    parts = _parts(rows)
    if len(parts) == 1:
        return encode(rows)
    encoded = []
    for part in parts:
        encoded.append(encode(rows[part]))
        # Each part casts the weights anew. So the gradients of the parts are summed in float32.
        torch.clear_autocast_cache()
    return torch.cat(encoded)


def _parts(rows: Tensor) -> list[slice]:
    """Of nearly the same length; one on a GPU."""
    num_rows = rows.shape[0]
    if rows.device.type != "cpu" or not isinstance(num_rows, int):  # a compiler leaves their number open
        return [slice(None)]
    num_parts = round(rows.numel() / _PART)
    if num_parts <= 1:
        return [slice(None)]
    length = math.ceil(num_rows / num_parts)
    return [slice(begin, begin + length) for begin in range(0, num_rows, length)]


class Convolutional(nn.Module):
    """Convolutions, which take images in parts, then linear layers, which take all at once.

    Each part would cast the many weights of the linear layers anew. A subclass sets the attributes.
    """

    convolutions: nn.Sequential
    linear: nn.Sequential
    out_size: int

    def forward(self, images: Tensor) -> Tensor:
        """Images as the first convolution takes them -> [N, out_size]."""
        return self.linear(in_parts(lambda part: flat(self.convolutions(part)), images))


class ResidualBlock(nn.Module):
    """x + two convolutions of 3x3, with an activation before each (He et al. 2016, "Identity mappings")."""

    def __init__(self, channels: int, nonlinearity: str, *, begins_as_identity: bool = False) -> None:
        """begins_as_identity: the second convolution begins with weights of 0."""
        super().__init__()
        first, second = (orthogonal(nn.Conv2d(channels, channels, 3, padding=1)) for _ in range(2))
        if begins_as_identity:
            nn.init.zeros_(second.weight)
        # Not in place at first: the input itself is still needed for the sum.
        self.branch = nn.Sequential(activation(nonlinearity, inplace=False), first, activation(nonlinearity), second)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


class ScaledConv(nn.Conv2d):
    """A convolution of 3x3 over numbers in steps of `scale`: the weights are scaled, of which there are fewer."""

    def __init__(self, in_channels: int, out_channels: int, stride: int | tuple[int, int], scale: float) -> None:
        super().__init__(in_channels, out_channels, 3, stride, padding=1)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight if self.scale == 1 else self.weight * self.scale, self.bias)


def flat(x: Tensor) -> Tensor:
    """[N, C, H, W] in channels_last memory -> [N, H x W x C], without a copy."""
    return x.permute(0, 2, 3, 1).flatten(1)
