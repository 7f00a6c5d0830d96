"""Follows a game of OpenSpiel from what a player sees.

Whoever searches, or plays by an engine of its own, needs the state of the game, and a player sees its tensor alone. In
a game of perfect information that is enough: the moves of the others are those that lead to what the player sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sf.envs.errors import UsageError
from sf.envs.openspiel.games import TensorGame
from sf.envs.openspiel.views import Views

_MOST_STATES = 100_000  # that are looked at to find the moves of the others


class Follower:
    """The state of one game, as one of its players follows it."""

    def __init__(self, name: str, tensor_game: TensorGame) -> None:
        self._name = name
        self._game = tensor_game.game
        self._observer = tensor_game.make_observer()
        self._movers = Views(self._game.num_players(), tensor_game.tensor_shape).by_mover
        self._state: Any = None  # not known until a game begins

    def start(self) -> None:
        self._state = self._game.new_initial_state()

    def look(self, seen: np.ndarray) -> Any:
        """The state that looks like this to its player (a `View.whole`). None: it has not seen how the game began.

        Raises UsageError where none of the states that can follow does.
        """
        if self._state is None:
            return None
        for state in self._that_follow():
            if self._looks_like(state, seen):
                self._state = state
                return state
        raise UsageError(
            f"player {self._name!r} cannot follow this game, in which chance has too many outcomes, or a "
            "player does not see all: name another player"
        )

    def play(self, action: int) -> None:
        self._state = self._state.child(action)

    def _that_follow(self) -> Iterator[Any]:
        """The present state and those after it, nearest first."""
        yield self._state
        level, num_states = [self._state], 1
        while level:
            following = []
            for state in level:
                for action in state.legal_actions():
                    after = state.child(action)
                    yield after
                    following.append(after)
                    num_states += 1
                    if num_states == _MOST_STATES:
                        return
            level = following

    def _looks_like(self, state: Any, seen: np.ndarray) -> bool:
        """Returns whether it looks so to one of its players, whose seat is among what it sees."""
        for view in self._movers.get(state.current_player(), ()):  # none if the game is over
            self._observer.set_from(state, view.player)
            view.tensor[...] = self._observer.tensor
            if np.array_equal(view.whole, seen):
                return True
        return False
