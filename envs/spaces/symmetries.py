"""Symmetries of an environment: other ways to see a situation in which the same is worth doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

UNKNOWN = -1
"""What an action becomes of which that is not known."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """One of them, such as a board and its mirror image.

    obs: [size] int64 for each observation that changes. Number i of the image is number obs[key][i] of the original,
    both of them flat. action: [A] int64, what each action becomes, or `UNKNOWN`.
    """

    obs: Mapping[str, np.ndarray]
    action: np.ndarray
