"""Lets the learners of all ranks agree on each iteration before it begins, and measures how long each waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch

from sf.ranks.ranks import Ranks

_LONG_S = 1.0  # an iteration that takes longer may be cut short by a stop


class RankStatus(NamedTuple):
    """Describes one learner before an iteration, or all of them together.

    env_steps: of the iteration that begins. goes_on: it has a batch, and was not asked to stop. lost_steps: env steps
    since the last status that are never trained on. share_done: of the run, from 0 to 1. has_orders: its parent has
    sent orders for the policy. is_signalled: it was asked to stop by a signal. last_s: seconds that the last iteration
    took; 0 before the first.
    """

    env_steps: int
    goes_on: bool
    lost_steps: int = 0
    share_done: float = 0.0
    has_orders: bool = False
    is_signalled: bool = False
    last_s: float = 0.0


class Agreement:
    """Combines the statuses of all ranks before each iteration."""

    def __init__(self, ranks: Ranks, held_up: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        """held_up: makes the context in which this rank waits for others."""
        self._ranks = ranks
        self._held_up = held_up
        self._waited_s = ranks.waited_s  # up to what the others know
        self._waits_s = torch.zeros(ranks.size, dtype=torch.float64)  # of each rank, since `pop_wait_shares`
        self._since = time.perf_counter()
        self._asks_within = True

    def reach(self, own: RankStatus) -> RankStatus:
        """Wait for all ranks, and return the status of all together.

        Steps are summed. All ranks go on, or none does. The clock and the orders are those of the first rank.
        """
        ranks = self._ranks
        if ranks.size == 1:
            return own
        of_first = (own.share_done, own.has_orders) if ranks.rank == 0 else (0.0, 0.0)
        against = (not own.goes_on, own.is_signalled)
        times = (own.last_s, own.last_s == 0.0)
        numbers = torch.tensor([own.env_steps, own.lost_steps, *against, *of_first, *times], dtype=torch.float64)
        waits_s = torch.zeros(ranks.size, dtype=torch.float64)
        waits_s[ranks.rank] = ranks.waited_s - self._waited_s
        self._waited_s = ranks.waited_s
        with self._held_up():
            numbers, waits_s = ranks.totals(numbers, waits_s)
        self._waits_s += waits_s
        env_steps, lost_steps, num_against, num_signalled, share_done, has_orders, last_s, num_new = numbers.tolist()
        self._asks_within = num_new > 0 or last_s / ranks.size > _LONG_S
        return RankStatus(
            env_steps=round(env_steps),
            goes_on=num_against == 0,
            lost_steps=round(lost_steps),
            share_done=share_done,
            has_orders=bool(has_orders),
            is_signalled=num_signalled > 0,
            last_s=last_s / ranks.size,
        )

    def goes_on(self, own: bool) -> bool:
        """Returns whether all ranks go on within the iteration. All ask before each of the same pieces of work.

        Ranks finish a short iteration that they have begun, without a message.
        """
        if self._ranks.size == 1 or not self._asks_within:
            return own or self._ranks.size > 1
        (num_against,) = self._ranks.totals(torch.tensor(0.0 if own else 1.0, dtype=torch.float64))
        return float(num_against) == 0.0

    def pop_wait_shares(self) -> list[float]:
        """Returns the share of the time since the last call that each rank has waited for others, from 0 to 1."""
        now = time.perf_counter()
        shares = (self._waits_s / (now - self._since)).clamp(max=1.0).tolist()
        self._waits_s.zero_()
        self._since = now
        return shares
