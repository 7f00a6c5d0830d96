"""What encoders with convolutions share."""

from __future__ import annotations

from torch import Tensor, nn

from sf.model.layers import activation, orthogonal


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


def flat(x: Tensor) -> Tensor:
    """[N, C, H, W] in channels_last memory -> [N, H x W x C], without a copy."""
    return x.permute(0, 2, 3, 1).flatten(1)
