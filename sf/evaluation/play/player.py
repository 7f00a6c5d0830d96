"""Who acts in an episode: a trained policy, random moves, a function, a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class OneByOne:
    """act: of actor n, by what it sees and whether an episode begins: its action, discrete [D] and continuous [C].

    `deterministic` does not reach it, and it predicts no values.
    """

    def __init__(self, act: Callable[[int, Mapping[str, np.ndarray], bool], tuple[np.ndarray, np.ndarray]]) -> None:
        self._act = act

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        first: np.ndarray,
        who: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> Actions:
        positions = range(len(first)) if who is None else who.tolist()
        acted = [
            self._act(n, {key: rows[m] for key, rows in obs.items()}, bool(first[m])) for m, n in enumerate(positions)
        ]
        discrete, continuous = (np.stack(part) for part in zip(*acted, strict=True))
        return Actions(discrete, continuous, np.full(len(first), np.nan, np.float32))
