"""Joins the slots of an actor into games: a slot is full long before the outcome of its games is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sf.learner.games.targets import game_targets
from sf.shared.kept_games import TARGET
from sf.shared.rows import OBS, TurnMask, step_arrays
from sf.system.arrays import SharedArrays


class _Part(NamedTuple):
    """Rows of a game that lie in one slot. fields: of its decisions, [D, ...]. The others are of all rows, [N]."""

    fields: dict[str, np.ndarray]
    reward: np.ndarray
    value: np.ndarray
    acts: np.ndarray


class GameJoiner:
    """Holds the games of all actors that have not ended.

    A game is known from its first row on. It is dropped where it does not go on: its rollout worker has died, or it was
    cut off, and has no outcome. An actor's slots are taken in the order in which they were filled. Where a learner has
    died that may not be so, and a slot that does not begin with the observation that the one before ends with is of
    another game.
    """

    def __init__(self, rows: SharedArrays, *, gamma: float, lambda_: float, reward_scale: float) -> None:
        """rows: of the slots. lambda_: see `game_targets`. reward_scale: of the values in the rows."""
        self._rows = rows
        self._fields = step_arrays(rows)
        self._turns = TurnMask.from_rows(rows)
        self._gamma, self._lambda, self._reward_scale = gamma, lambda_, reward_scale
        self._parts: dict[int, list[_Part]] = {}  # of the game of each actor that is under way
        self._next_obs: dict[int, dict[str, np.ndarray]] = {}  # that the next slot of the actor begins with

    def add(self, slot: int) -> list[dict[str, np.ndarray]]:
        """Returns the games that end in this slot: of each decision the fields of a step and its target, [D, ...]."""
        rows, actor = self._rows, int(self._rows["actor"][slot])
        first, terminated = rows["first"][slot], rows["terminated"][slot]
        num_steps = len(terminated)
        parts = self._parts.pop(actor, None) if self._goes_on(actor, slot) else None
        ended, begin = [], 0
        for t in range(num_steps):
            if first[t]:
                parts, begin = [], t
            if terminated[t] and parts is not None:
                ended.append(self._finished([*parts, self._part(slot, begin, t + 1)]))
                parts = None
        if parts is not None:
            self._parts[actor] = [*parts, self._part(slot, begin, num_steps)]
            self._next_obs[actor] = {name: self._fields[name][slot, num_steps].copy() for name in self._obs_names}
        return [game for game in ended if len(game[TARGET])]

    @property
    def _obs_names(self) -> list[str]:
        return [name for name in self._fields if name.startswith(OBS)]

    def _goes_on(self, actor: int, slot: int) -> bool:
        if actor not in self._parts:
            return False
        following = self._next_obs.pop(actor)
        if all(np.array_equal(seen, self._fields[name][slot, 0]) for name, seen in following.items()):
            return True
        del self._parts[actor]
        return False

    def _part(self, slot: int, begin: int, end: int) -> _Part:
        """Returns a copy: the slot is given back."""
        at = np.arange(begin, end)
        acts = self._rows["valid"][slot, begin:end].copy()
        if self._turns is not None:
            acts &= self._turns.acts(np.full(len(at), slot), at)
        fields = {name: array[slot, at[acts]] for name, array in self._fields.items()}
        return _Part(fields, self._rows["reward"][slot, at], self._rows["value"][slot, at], acts)

    def _finished(self, parts: list[_Part]) -> dict[str, np.ndarray]:
        reward, value, acts = (np.concatenate([getattr(part, name) for part in parts]) for name in _Part._fields[1:])
        targets = game_targets(reward, value / self._reward_scale, acts, gamma=self._gamma, lambda_=self._lambda)
        fields = {name: np.concatenate([part.fields[name] for part in parts]) for name in self._fields}
        return {**fields, TARGET: targets[acts]}
