"""A Box of whose numbers some agents have only the first few."""

from __future__ import annotations

import gymnasium as gym


class PartialBox(gym.spaces.Box):
    """The continuous actions of agents of several kinds, of which one kind has fewer than another.

    The observation `continuous_mask` says which numbers an agent has: see `sf.model.distributions`.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartialBox) and super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]  # as of every Box
