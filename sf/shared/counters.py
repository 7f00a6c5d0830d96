"""What every process counts, in shared memory: written by that process alone, read by the parent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sf.system.arrays import Field, SharedArrays

OF_SEARCH = (
    *("simulations", "kept_simulations", "leaves", "leaf_depth", "leaf_requests"),
    *("searched_games", "resigned_games", "would_resign", "would_resign_wrongly"),
)
COUNTS = (
    *("steps", "calls", "episodes", "rows", "player_steps", "heartbeat", "is_held_up", "away", "envs"),
    *OF_SEARCH,
)
_TIMES = ("busy_s", "wait_s", "slot_wait_s")


@dataclass(frozen=True)
class Counters:
    """One row a process.

    steps: env steps (rollout worker), actions (policy worker), env steps trained on, or lost with a learner that died
        (learner).
    rows: of slots, also those that are no env steps, since the agent waits or its action is ignored (rollout worker).
    player_steps: env steps of players that do not learn, which no learner takes (rollout worker).
    calls: group steps, forward passes, optimiser steps.
    episodes: that have ended, by themselves or by the fault of an environment (rollout worker).
    away: agents that are in no episode, as they have left their match (rollout worker).
    envs: environments that are made (rollout worker).
    simulations: of searches; kept_simulations: that their trees had from earlier moves when they began; leaves: that
        policy workers have evaluated in leaf_requests; leaf_depth: moves from the roots to these, all together (rollout
        worker).
    searched_games: that have ended, where players may resign; resigned_games: those in which one has; would_resign:
        players in games that were played on; would_resign_wrongly: those of them that did not lose (rollout worker).
    heartbeat: odd while it works, even while it waits; grows with every piece of work.
    is_held_up: 1 while it waits for other ranks, however much work it has (learner).
    times: seconds of work, of waiting for a message, and of waiting for a free slot (rollout worker). The one under way
        is kept as its earlier seconds minus the moment at which it began: a negative number, to which a reader adds the
        clock.
    """

    arrays: SharedArrays

    @classmethod
    def allocate(cls, num_processes: int) -> Counters:
        return cls(SharedArrays(counter_fields(num_processes), name="sf-counters"))

    def row(self, process_idx: int) -> CounterRow:
        return CounterRow(self.arrays, process_idx)

    def snapshot(self) -> tuple[float, dict[str, np.ndarray]]:
        """Returns `time.perf_counter()` and a copy of all rows at that moment, by name: [num_processes] float64.

        Times are `busy_s`, `wait_s` and `slot_wait_s`, the one under way included. Those of a process add up to no more
        than the time that has passed.
        """
        while True:
            times, now = self.arrays["times"].copy(), time.perf_counter()
            if (times == self.arrays["times"]).all():  # no process has gone on between the copy and the clock
                break
        times[times < 0] += now
        counts = {name: self.arrays[name].copy() for name in COUNTS}
        return now, counts | dict(zip(_TIMES, times.T, strict=True))


def counter_fields(num_processes: int) -> list[Field]:
    """Returns the arrays of the shared memory of the counters."""
    counts = [Field(name, (num_processes,), np.float64) for name in COUNTS]
    return [*counts, Field("times", (num_processes, len(_TIMES)), np.float64)]


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
        """A piece of work begins. Its time counts unless it precedes the first wait, when the process starts."""
        self._beat(odd=True)
        if min(self._times.tolist()) < 0:
            self._spend("busy_s")

    def waiting(self, name: str = "wait_s") -> None:
        """A wait begins. name: what its time counts as, `wait_s` or `slot_wait_s`."""
        self._beat(odd=False)
        self._spend(name)

    def resting(self) -> None:
        """The process has ended: no time is counted until the first wait of its successor."""
        self._spend(None)

    def get(self, name: str) -> float:
        return float(self.arrays[name][self.process_idx])

    @property
    def _times(self) -> np.ndarray:
        return self.arrays["times"][self.process_idx]  # [3]

    def _spend(self, name: str | None) -> None:
        """Time counts as this from now on; None: not at all."""
        now, times = time.perf_counter(), self._times
        seconds = [each + now if each < 0 else each for each in times.tolist()]
        if name is not None:
            seconds[_TIMES.index(name)] -= now
        times[:] = seconds  # in one piece, so that no reader finds half of it

    def _beat(self, *, odd: bool) -> None:
        beat = int(self.arrays["heartbeat"][self.process_idx]) + 1
        self.arrays["heartbeat"][self.process_idx] = beat if beat % 2 == odd else beat + 1
