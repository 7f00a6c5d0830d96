"""The encoder of grids of symbols: a learned vector for each code, then small convolutions."""

from __future__ import annotations

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces.symbol_grids import MOST_CODES, codes, grid_shape, is_integer_grid
from sf.model.encoders.blocks import flat
from sf.model.encoders.boards import board_layers
from sf.model.layers import compute_dtype
from sf.model.registry import register_encoder

_EMBEDDING_SIZE = 16
_MOST_CHANNELS = 16  # of codes: more are numbers, since each channel of each cell is a look-up


@register_encoder("symbols")
class SymbolsEncoder(nn.Module):
    """A grid [N, H, W], [N, H, W, C] or [N, C, H, W] of integers -> [N, out_size].

    Each cell is the sum of a learned vector for each of its channels' codes: the first layer of a network on one-hot
    codes, without the one-hot. Planes with two values, and the numbers of many channels, go into the convolutions
    as 0 to 1. A code outside of the space counts as the nearest one inside.
    """

    def __init__(self, space: gym.spaces.Box, config: ModelConfig) -> None:
        super().__init__()
        if not is_integer_grid(space):
            raise UsageError(
                f"encoder is symbols, which reads integer Boxes of rank 2 or 3, but the observation is {space}: use "
                "--encoder auto or mlp"
            )
        self.grid = grid_shape(space.shape)
        self.lowest, self.num_codes = codes(space)
        self.is_embedded = self.num_codes > 2 and self.grid.channels <= _MOST_CHANNELS
        if self.is_embedded and self.num_codes > MOST_CODES:
            raise UsageError(
                f"the integers of observation {space} may have {self.num_codes:,} values, and --encoder symbols takes "
                f"{MOST_CODES:,} at most: narrow the low and high of the space, or take --encoder mlp"
            )
        channels = self.grid.channels
        if self.is_embedded:
            table = torch.randn(channels, self.num_codes, _EMBEDDING_SIZE) / channels**0.5
            self.table = nn.Parameter(table)  # [C, codes, E]
            channels = _EMBEDDING_SIZE
        height, width = self.grid.height, self.grid.width
        self.convolutions, self.linear, self.out_size = board_layers(channels, height, width, config)

    def forward(self, symbols: Tensor) -> Tensor:
        if not self.grid.has_channels:
            symbols = symbols.unsqueeze(-1)
        elif not self.grid.channels_trail:
            symbols = symbols.permute(0, 2, 3, 1)
        x = self._embedded(symbols) if self.is_embedded else self._scaled(symbols)  # [N, H, W, E]
        return self.linear(flat(self.convolutions(x.permute(0, 3, 1, 2))))

    def _embedded(self, symbols: Tensor) -> Tensor:
        rows = (symbols.int() - self.lowest).clamp(0, self.num_codes - 1)
        x = F.embedding(rows[..., 0], self.table[0])
        for channel in range(1, self.grid.channels):
            x = x + F.embedding(rows[..., channel], self.table[channel])
        return x

    def _scaled(self, symbols: Tensor) -> Tensor:
        if self.lowest:  # as integers: bfloat16 has only 8 bits for what is far from 0
            symbols = symbols.long() - self.lowest
        numbers = symbols.to(compute_dtype(next(self.parameters())))
        return (numbers * (1 / max(1, self.num_codes - 1))).contiguous()
