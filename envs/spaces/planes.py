"""Boards as planes of numbers: a space that says where its channels are."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError


class Planes(gym.spaces.Box):
    """C planes of H x W numbers, [C, H, W], such as one plane for each kind of piece on a board.

    Networks convolve them as they are, so the numbers should be about 1 in size; a plain Box of rank 3 is flattened and
    normalised instead.
    """

    def __init__(self, num_planes: int, height: int, width: int, step: float | None = None) -> None:
        """step: the numbers are int8, and a 1 stands for this much: a quarter of the memory, and of the time to move
        large planes about. None: they are float32. Raises UsageError where it is no positive number.
        """
        if step is not None and not 0 < step < math.inf:
            raise UsageError(f"the step of planes is {step}: give a positive number, or None for float32")
        self.step = step
        low, high, dtype = (-np.inf, np.inf, np.float32) if step is None else (-128, 127, np.int8)
        super().__init__(low, high, (num_planes, height, width), dtype)

    @property
    def scale(self) -> float:
        """Returns what a 1 stands for."""
        return 1.0 if self.step is None else self.step

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.step == getattr(other, "step", None)

    __hash__ = None  # type: ignore[assignment]  # as of every Box
