"""What encoders with convolutions share."""

from __future__ import annotations

from torch import Tensor, nn

from sf.model.encoders.parts import in_parts
from sf.model.layers import activation, orthogonal


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
