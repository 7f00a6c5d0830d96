"""Finds the games that searching players play, where they are played: in a group of environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from sf.envs.group import ForwardModel, SearchableGroup
from sf.search.search import Search


class Games(Protocol):
    """Holds the games of N actors, each in its own, and what a search plays them on with."""

    @property
    def model(self) -> ForwardModel: ...

    def look(self, n: int, seen: Mapping[str, np.ndarray], is_first: bool) -> Any:
        """Returns the state of the game of actor n, which sees this; None: it is not known, or it is over. Called at
        every step, also where the actor waits."""
        ...

    def take_up(self, search: Search, n: int, state: Any) -> None:
        """Let the search of game n begin at this state."""
        ...

    def played(self, n: int, action: int) -> None:
        """Actor n has chosen an action in the state that was taken up."""
        ...


class GamesOfGroup:
    """Finds the games in the group that plays them: game n is that of environment n.

    Each search begins with a new tree: another chance may have come true than those in the tree of the last move.
    """

    def __init__(self, group: SearchableGroup, seed: int) -> None:
        self.model = group.forward_model(seed)
        self._group = group

    def look(self, n: int, seen: Mapping[str, np.ndarray], is_first: bool) -> Any:
        return self._group.game(n)

    def take_up(self, search: Search, n: int, state: Any) -> None:
        search.forget(n)
        self.model.begin(n, state)

    def played(self, n: int, action: int) -> None:
        pass
