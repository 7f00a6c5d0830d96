"""Finds the games of OpenSpiel that searching players play, by what they see: it takes no group in the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sf.envs.openspiel.forward import OpenSpielModel
from sf.envs.openspiel.games import load
from sf.envs.openspiel.group import OBSERVATION
from sf.envs.options import EnvOptions
from sf.evaluation.play.games.following import Follower
from sf.search.search import Search


class FollowedGame:
    """Holds a game that can be followed."""

    def __init__(self, name: str, env_id: str, options: EnvOptions) -> None:
        """name: of the player. Raises UsageError for a game that cannot be searched."""
        self._name = name
        self._env_id = env_id
        self._tensor_game = load(env_id, options.kwargs, seed=0)
        OpenSpielModel(env_id, self._tensor_game)  # a game that it cannot search is refused now

    def games(self, num_actors: int, seed: int) -> FollowedGames:
        model = OpenSpielModel(self._env_id, self._tensor_game, seed)
        return FollowedGames(model, [Follower(self._name, self._tensor_game) for _ in range(num_actors)])


class FollowedGames:
    """Follows the games of N actors. The tree of a move goes on in the next."""

    def __init__(self, model: OpenSpielModel, followers: list[Follower]) -> None:
        self.model = model
        self._followers = followers
        self._histories: list[list[int] | None] = [None] * len(followers)  # of the roots of the trees

    def look(self, n: int, seen: Mapping[str, np.ndarray], is_first: bool) -> Any:
        if is_first:
            self._followers[n].start()
            self._histories[n] = None
        return self._followers[n].look(seen[OBSERVATION])

    def take_up(self, search: Search, n: int, state: Any) -> None:
        """Go on with the tree of the last move, where the moves since then are in it."""
        history = state.history()
        before = self._histories[n]
        if before is not None and history[: len(before)] == before:
            for action in history[len(before) :]:
                search.descend(n, action)
                if not search.is_known(n):
                    break
        else:
            search.forget(n)
        if not search.is_known(n):
            self.model.begin(n, state)
        self._histories[n] = history

    def played(self, n: int, action: int) -> None:
        self._followers[n].play(action)
