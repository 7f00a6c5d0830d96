"""How what the parent decides reaches the learners, and the pipes that it lays between children."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from sf.metrics.progress import Progress


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


class LearnerOrders:
    """Sends orders to the learners that live, and holds what the next ones start with.

    links: the pipes to the children. hyperparameters: returns those of the learner of a policy that differ from the
    configuration. The controllers set it, and the starter reads it at each start.
    """

    def __init__(self, progress: Progress) -> None:
        self.links = Links()
        self.hyperparameters: Callable[[int], Mapping[str, float]] = lambda policy_id: {}
        self._progress = progress

    def order(self, policy_id: int, **order: Any) -> None:
        """Note an order where the progress is watched, and send it to the learner of the policy."""
        self._progress.policies[policy_id].note_order(order["copies"], begins_anew="begins_from" in order)
        self.links.order(policy_id, **order)
