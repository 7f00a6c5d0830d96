"""Boards as planes of real numbers: a space that says where its channels are."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


class Planes(gym.spaces.Box):
    """C planes of H x W numbers, [C, H, W] float32, such as one plane for each kind of piece on a board.

    Networks convolve them as they are, so the numbers should be about 1 in size; a plain Box of rank 3 is flattened and
    normalised instead.
    """

    def __init__(self, num_planes: int, height: int, width: int) -> None:
        super().__init__(-np.inf, np.inf, (num_planes, height, width), np.float32)
