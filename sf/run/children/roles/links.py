"""The pipes that the parent lays between children, and from itself to the learners."""

from __future__ import annotations

import json
import multiprocessing
from contextlib import suppress
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any


class Links:
    """Holds the parent's ends, by policy. What is handed to a child is closed here once that child has started."""

    def __init__(self) -> None:
        self._policy_workers: dict[int, Connection] = {}  # where a learner is given the pipes of its policy workers
        self._orders: dict[int, Connection] = {}  # where a learner hears of decisions
        self._handed_over: list[Connection] = []

    def of_learner(self, policy_id: int) -> tuple[Connection, Connection]:
        """For a learner that starts: where it receives the pipe of each of its policy workers, and orders."""
        ours, policy_workers = multiprocessing.Pipe()
        orders, our_orders = multiprocessing.Pipe(duplex=False)
        for pipes, pipe in ((self._policy_workers, ours), (self._orders, our_orders)):
            if policy_id in pipes:
                pipes[policy_id].close()
            pipes[policy_id] = pipe
        self._handed_over += [policy_workers, orders]
        return policy_workers, orders

    def of_policy_worker(self, policy_id: int) -> Connection:
        """For a policy worker that starts: a pipe to the learner of its policy, which has started before."""
        learners_end, its_end = multiprocessing.Pipe()
        with suppress(OSError):  # the learner has died, which is seen next, and takes this one with it
            reduction.send_handle(self._policy_workers[policy_id], learners_end.fileno(), None)
        learners_end.close()
        self._handed_over.append(its_end)
        return its_end

    def close_handed_over(self) -> None:
        while self._handed_over:
            self._handed_over.pop().close()

    def order(self, policy_id: int, **order: Any) -> None:
        """Tell the learner of a policy what was decided. One that has died hears of it in its successor's arguments."""
        with suppress(OSError):
            self._orders[policy_id].send_bytes(json.dumps(order).encode())
