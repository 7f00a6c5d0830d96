"""Actors of a player that thinks for one of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sf.play.player import Actions


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
