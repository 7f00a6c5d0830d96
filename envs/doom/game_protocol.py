"""What a group of Doom games steps, and a camera films: `DoomEnv` and `Match` are two kinds of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from sf.envs.group import Episode

Rows = Sequence[Mapping[str, np.ndarray]]
"""Where the observations of one game go, an agent each."""


class Game(Protocol):
    """What plays: a scenario with one agent, or a match with one or more. See `DoomEnv` and `Match`."""

    def reset(self, obs: Rows) -> None: ...

    def begins_anew(self, choices: Sequence[Sequence[int]]) -> bool:
        """Whether these choices, before any `step`, ask for another episode. `reset` begins it, and ignores them."""
        return False

    def step(self, choices: Sequence[Sequence[int]], obs: Rows) -> tuple[list[float], bool, bool]: ...

    def set_shaping(self, agent_idx: int, weights: Sequence[float]) -> None: ...

    def episodes(self, first_actor_idx: int) -> list[Episode]: ...

    def returns(self) -> list[float]: ...

    def close(self) -> None: ...
