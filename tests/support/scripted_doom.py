"""An engine of Doom that shows what a test tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import vizdoom

MOST_PLAYERS = 16


class ScriptedEngine:
    """Stands in for a `vizdoom.DoomGame`.

    values: game variables by name; the others are 0. frags: of all players. timeout: of the episode, in tics.
    """

    def __init__(self, timeout: int = 0) -> None:
        self.values: dict[str, float] = {}
        self.frags = [0]
        self._timeout = timeout
        self._names: list[str] = []
        self._time = 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Settings have no effect."""
        if name.startswith(("set_", "load_")):
            return lambda *args: True
        raise AttributeError(name)

    def set_available_game_variables(self, variables: Sequence[vizdoom.GameVariable]) -> None:
        self._names = [variable.name for variable in variables]

    def get_doom_scenario_path(self) -> str:
        return ""

    get_doom_game_path = get_doom_scenario_path

    def get_episode_timeout(self) -> int:
        return self._timeout

    def get_episode_time(self) -> int:
        return self._time

    def new_episode(self) -> None:
        self._time = 1

    def make_action(self, buttons: Sequence[float], tics: int) -> float:
        """Each tic is worth 1."""
        self._time += tics
        return float(tics)

    def get_state(self) -> SimpleNamespace:
        shown = np.array([self.values.get(name, 0.0) for name in self._names])
        return SimpleNamespace(screen_buffer=np.zeros((120, 160, 3), np.uint8), game_variables=shown)

    def get_server_state(self) -> SimpleNamespace:
        num_absent = MOST_PLAYERS - len(self.frags)
        return SimpleNamespace(
            players_in_game=[True] * len(self.frags) + [False] * num_absent,
            players_frags=[*self.frags, *[0] * num_absent],
        )

    def get_game_variable(self, variable: vizdoom.GameVariable) -> float:
        return self.values.get(variable.name, 0.0)
