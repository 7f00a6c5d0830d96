"""An observation that says who an agent is, such as its index: a space that networks read with all others."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


class Identity(gym.spaces.Box):
    """One of n as a one-hot vector, [n] float32.

    It changes what the other observations mean, so the network joins it with each of them
    (`sf.model.trunk`), where a plain Box has an encoder of its own.
    """

    def __init__(self, n: int) -> None:
        super().__init__(0.0, 1.0, (n,), np.float32)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]  # as of every Box
