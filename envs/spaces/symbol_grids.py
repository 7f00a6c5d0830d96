"""Grids of symbols: integers that are codes, such as the cells of MiniGrid or the glyphs of NetHack, not brightness.

Nothing in a space says what its integers mean, so its numbers and its size decide:

picture   uint8 of rank 3 that spans 0 to 255 and is at least `SMALLEST_PICTURE` pixels high and wide.
planes    integers of rank 3 with two values, such as a board that has a plane for each kind of piece. A plane of
          `SMALLEST_PLANES` or more a side is a picture, too, if it is of uint8.
          Bounded floats of rank 3 of the size of 1 are planes as well.
codes     other integers of rank 2 [H, W], or 3 with channels, with 3 to `MOST_CODES` values, at least 2 cells a side.
          Of those that span 0 to 255, a side is below `SMALLEST_PICTURE`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sf.envs.spaces.observations import channels_trail, is_image

SMALLEST_PICTURE = 28  # pixels of the shorter side: below, 0 to 255 is taken for codes that declare no more
SMALLEST_PLANES = 36
SMALLEST_IMAGE = 36  # pixels of its shorter side that the convolutions of the encoder "simple" can do with
SMALLEST_FLOAT_BOARD = 3  # cells of its shorter side
LARGEST_IN_BOARD = 10.0  # what is not normalised should be about 1 in size
MOST_CODES = 16_384  # each has a row in a table of weights


class GridShape(NamedTuple):
    """channels_trail: whether they are the last axis, else the first. has_channels: else the grid is [H, W]."""

    channels: int
    height: int
    width: int
    channels_trail: bool
    has_channels: bool


def is_symbols(space: gym.Space, any_planes: bool = True) -> bool:
    """Returns whether a stored observation (`sf.envs.spaces.observations.ObsWriter`) is a grid of symbols.

    any_planes: false where planes have to be of uint8, as in policies that are older than `--any_planes`.
    """
    if not is_integer_grid(space):
        return False
    assert isinstance(space, gym.spaces.Box)
    side, num_codes = shorter_side(space), codes(space)[1]
    if num_codes <= 2:
        return side < SMALLEST_PLANES and (is_image(space) or (any_planes and len(space.shape) == 3))
    is_bright = int(space.low.min()) == 0 and int(space.high.max()) == 255
    return 2 <= side < (SMALLEST_PICTURE if is_bright else np.inf) and num_codes <= MOST_CODES


def is_float_board(space: gym.Space) -> bool:
    """Returns whether a stored observation is a board of floats, as MAgent's are: bounded numbers of rank 3 of the size
    of 1, with cells in rows and columns."""
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 3 or space.dtype != np.float32:
        return False
    side, size = shorter_side(space), max(-float(space.low.min()), float(space.high.max()))
    return SMALLEST_FLOAT_BOARD <= side < SMALLEST_PLANES and size <= LARGEST_IN_BOARD


def is_integer_grid(space: gym.Space) -> bool:
    """Returns whether it has integers in rows and columns, with or without channels."""
    if not isinstance(space, gym.spaces.Box) or len(space.shape) not in (2, 3):
        return False
    dtype: Any = space.dtype
    return dtype.kind in "iu"


def codes(space: gym.spaces.Box) -> tuple[int, int]:
    """Returns the lowest integer of a space, and how many there are from it to the highest."""
    lowest = int(space.low.min())
    return lowest, int(space.high.max()) - lowest + 1


def shorter_side(space: gym.Space) -> int:
    """Returns the cells or pixels of the shorter side of a space of rank 2 or 3."""
    assert space.shape is not None
    grid = grid_shape(space.shape)
    return min(grid.height, grid.width)


def grid_shape(shape: tuple[int, ...]) -> GridShape:
    """Returns the shape of a space of rank 2 or 3."""
    if len(shape) == 2:
        return GridShape(1, *shape, channels_trail=True, has_channels=False)
    first, middle, last = shape
    if channels_trail(shape):
        return GridShape(last, first, middle, channels_trail=True, has_channels=True)
    return GridShape(first, middle, last, channels_trail=False, has_channels=True)
