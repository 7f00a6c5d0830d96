"""Films the games of an arena: several pictures for each decision, so that units are seen to walk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sf.envs.rendering.film import Film
from sf.envs.rts.arena import Arena
from sf.envs.rts.picture import Painter

TICKS_A_PICTURE = 5
PICTURES_PER_S = 30.0


class ArenaCamera:
    """An `sf.envs.rendering.film.Camera`, and the watcher of its arena."""

    def __init__(self, arena: Arena) -> None:
        self._games = arena.games
        self._painter = Painter(arena.games, 0 if arena.num_players == 1 else None)
        self.films = [Film() for _ in range(arena.games.num)]
        self._returns = np.zeros(arena.games.num * arena.num_players)
        self.ticks_a_picture = TICKS_A_PICTURE
        arena.watcher = self

    def began(self, which: np.ndarray) -> None:
        """These games [E] have begun."""
        for g in np.flatnonzero(which).tolist():
            self.films[g].begin(self._painter.draw(g))

    def moved(self, which: np.ndarray) -> None:
        """These games [E] have gone on."""
        for g in np.flatnonzero(which).tolist():
            self.films[g].add(self._painter.draw(g))

    def paid(self, rewards: np.ndarray, ended: np.ndarray) -> None:
        """What each player got [E, P]."""
        self._returns = np.where(ended[:, None], 0.0, self._returns.reshape(rewards.shape) + rewards).ravel()

    def show_to(self, player: int) -> None:
        """From now on the pictures show what this player sees. They are of a single game."""
        self._painter.viewer = player
        self.films[0].replace(self._painter.draw(0))

    def returns(self) -> Sequence[float]:
        return self._returns.tolist()
