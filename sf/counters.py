"""What every process counts, in shared memory: written by that process alone, read by the parent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sf.arrays import Field, SharedArrays

_NAMES = (
    "steps", "calls", "busy_s", "wait_s", "slot_wait_s", "episodes", "rows", "player_steps", "heartbeat", "is_held_up",
    "away"
)  # fmt: skip


@dataclass(frozen=True)
class Counters:
    """One row a process.

    steps: env steps (rollout worker), actions (policy worker), env steps trained on, or lost with a learner that died
        (learner).
    rows: of slots, also those that are no env steps, since the agent waits or its action is ignored (rollout worker).
    player_steps: env steps of players that do not learn, which no learner takes (rollout worker).
    calls: group steps, forward passes, optimiser steps.
    busy_s, wait_s: seconds of work, and of waiting for a message.
    slot_wait_s: seconds of waiting for a free slot (rollout worker).
    episodes: that have ended, by themselves or by the fault of an environment (rollout worker).
    away: agents that are in no episode, as they have left their match (rollout worker).
    heartbeat: odd while it works, even while it waits; grows with every piece of work.
    is_held_up: 1 while it waits for other ranks, however much work it has (learner).
    """

    arrays: SharedArrays

    @classmethod
    def allocate(cls, num_processes: int) -> Counters:
        fields = [Field(name, (num_processes,), np.float64) for name in _NAMES]
        return cls(SharedArrays(fields, name="sf-counters"))

    def row(self, process_idx: int) -> CounterRow:
        return CounterRow(self.arrays, process_idx)

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of all rows, by name: [num_processes] float64."""
        return {name: self.arrays[name].copy() for name in _NAMES}


@dataclass(frozen=True)
class CounterRow:
    """The counters of one process."""

    arrays: SharedArrays
    process_idx: int

    def add(self, **amounts: float) -> None:
        for name, amount in amounts.items():
            self.arrays[name][self.process_idx] += amount

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """By other ranks, while this is open."""
        self.arrays["is_held_up"][self.process_idx] = 1
        try:
            yield
        finally:
            self.arrays["is_held_up"][self.process_idx] = 0

    def working(self) -> None:
        """A piece of work begins."""
        self._beat(odd=True)

    def waiting(self) -> None:
        """A wait begins."""
        self._beat(odd=False)

    def get(self, name: str) -> float:
        return float(self.arrays[name][self.process_idx])

    def _beat(self, *, odd: bool) -> None:
        beat = int(self.arrays["heartbeat"][self.process_idx]) + 1
        self.arrays["heartbeat"][self.process_idx] = beat if beat % 2 == odd else beat + 1
