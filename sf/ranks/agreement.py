"""What the learners of all ranks tell each other before each iteration, and who waits for whom."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch

from sf.ranks.ranks import Ranks


class Agreed(NamedTuple):
    """env_steps: of all ranks in this iteration. all_go_on: none has been asked to stop. share_done: of the run, from 0
    to 1, by the clock of the first rank."""

    env_steps: int
    all_go_on: bool
    share_done: float


class Agreement:
    """Reached by all ranks before each iteration."""

    def __init__(self, ranks: Ranks, held_up: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """held_up: what is opened while this rank waits for others."""
        self._ranks = ranks
        self._held_up = held_up
        self._waited_s = ranks.waited_s  # up to what the others know
        self._waits_s = torch.zeros(ranks.size, dtype=torch.float64)  # of each rank, since `pop_wait_shares`
        self._since = time.perf_counter()

    def reach(self, env_steps: int, goes_on: bool, share_done: float) -> Agreed:
        """Waits until all ranks have come. env_steps: of this rank, in this iteration."""
        ranks = self._ranks
        if ranks.size == 1:
            return Agreed(env_steps, goes_on, share_done)
        numbers = torch.tensor([env_steps, not goes_on, share_done if ranks.rank == 0 else 0.0], dtype=torch.float64)
        waits_s = torch.zeros(ranks.size, dtype=torch.float64)
        waits_s[ranks.rank] = ranks.waited_s - self._waited_s
        self._waited_s = ranks.waited_s
        with self._held_up():
            numbers, waits_s = ranks.totals(numbers, waits_s)
        self._waits_s += waits_s
        steps, num_against, share = numbers.tolist()
        return Agreed(round(steps), num_against == 0, share)

    def pop_wait_shares(self) -> list[float]:
        """Of each rank: for how much of the time since the last call its learner has waited for others, from 0 to 1."""
        now = time.perf_counter()
        shares = (self._waits_s / (now - self._since)).clamp(max=1.0).tolist()
        self._waits_s.zero_()
        self._since = now
        return shares
