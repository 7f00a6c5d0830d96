"""Who acts in an episode: a trained policy, random moves, a function. Each is one module of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np


class Actions(NamedTuple):
    """The actions of M actors, laid out as in `sf.envs.spaces.actions.ActionSpec`, and the values."""

    discrete: np.ndarray  # [M, D] int32
    continuous: np.ndarray  # [M, C] float32
    value: np.ndarray  # [M] float32, of the observations acted on; NaN from a player that predicts none


class Actors(Protocol):
    """N actors that one player plays, each with a memory of its own where the player has one."""

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        first: np.ndarray,
        who: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> Actions:
        """The actions of M of the actors. What they remember goes on.

        obs: {key: [M, ...]}, laid out as a group of environments writes it. first: [M] bool, whether an episode begins.
        who: [M] positions of the actors; None: all of them. deterministic: the most probable action, where the player
        has probabilities.
        """
        ...


class Player(Protocol):
    def actors(self, num_actors: int, seed: int) -> Actors: ...
