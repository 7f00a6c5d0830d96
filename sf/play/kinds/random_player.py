"""Random moves: each action that is allowed is as likely as the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sf.envs.spaces.actions import ACTION_MASK, ActionSpec, random_actions
from sf.play.player import Actions


class RandomPlayer:
    def __init__(self, action_spec: ActionSpec) -> None:
        self._action_spec = action_spec

    def actors(self, num_actors: int, seed: int) -> _RandomActors:
        return _RandomActors(self._action_spec, seed)


class _RandomActors:
    def __init__(self, action_spec: ActionSpec, seed: int) -> None:
        self._action_spec = action_spec
        self._rng = np.random.default_rng(seed)

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        first: np.ndarray,
        who: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> Actions:
        actions = random_actions(self._rng, self._action_spec, len(first), obs.get(ACTION_MASK))
        return Actions(*actions, np.full(len(first), np.nan, np.float32))
