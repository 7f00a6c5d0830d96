"""Starts the children of a run, at first and in the place of dead ones, and gives each what it needs."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from sf.evaluation.evaluator import evaluator
from sf.learner.args import LearnerArgs
from sf.policy.worker import PolicyWorkerArgs
from sf.processes.child import Child, Reports, start_child
from sf.processes.fork_servers import NETWORKS, SIMULATORS
from sf.rollout.worker import rollout_worker
from sf.run.allocation import RunMemory

PolicyBody = Callable[[Reports, PolicyWorkerArgs], None]
LearnerBody = Callable[[Reports, LearnerArgs], None]


class Starter:
    """policy_body, learner_body: what runs in those processes.

    resumed_steps: env steps of earlier parts of the run, by policy. hyperparameters: those of the learner of a policy
    that differ from the configuration.
    """

    def __init__(self, memory: RunMemory, policy_body: PolicyBody, learner_body: LearnerBody) -> None:
        self.resumed_steps: Sequence[int] = [0] * memory.plan.num_policies
        self.hyperparameters: Callable[[int], Mapping[str, float]] = lambda policy_id: {}
        self._memory = memory
        self._policy_body = policy_body
        self._learner_body = learner_body
        self._starts: Counter[str] = Counter()
        self._readers: dict[int, Connection] = {}  # by policy: where its learner hears of policy workers
        self._orders: dict[int, Connection] = {}  # by policy: where its learner hears of decisions

    def num_starts(self, child: Child) -> int:
        """How often a child of that name has been started."""
        return self._starts[child.name]

    def all(self, is_interrupted: Callable[[], bool]) -> Iterator[Child]:
        """Start all, one after another. Rollout workers first: simulators take longest to start."""
        plan = self._memory.plan
        for idx in range(plan.num_workers):
            if is_interrupted():
                return
            yield self.rollout_worker(idx)
        for policy_id in range(plan.num_policies):
            yield self.learner(policy_id)
        for idx in range(plan.num_policy_workers):
            yield self.policy_worker(idx)

    def rollout_worker(self, idx: int) -> Child:
        num_before = self._count_start(f"rollout-{idx}")
        seed_key = (sum(self.resumed_steps), num_before)  # what is drawn must not repeat
        args = self._memory.rollout_worker_args(idx, seed_key, is_first_start=num_before == 0)
        inputs = (args.channel.inbox, args.slots.free)
        return start_child(SIMULATORS, "rollout", idx, inputs, rollout_worker, args)

    def learner(self, policy_id: int) -> Child:
        readers, its_readers = multiprocessing.Pipe()
        its_orders, orders = multiprocessing.Pipe(duplex=False)
        goes_on_at = None
        if self._count_start(f"learner-{policy_id}"):
            steps = self._memory.pool.samples_taken(policy_id)
            counted = self._memory.counter_row("learner", policy_id)
            counted.add(steps=steps - counted.get("steps"))  # what was in the hands of the dead one is taken, and lost
            goes_on_at = self.resumed_steps[policy_id] + steps
        others_before = sum(self.resumed_steps) - self.resumed_steps[policy_id]
        args = self._memory.learner_args(
            policy_id, its_readers, its_orders, self.hyperparameters(policy_id), goes_on_at, others_before
        )
        child = start_child(NETWORKS, "learner", policy_id, (args.slots.full,), self._learner_body, args)
        for held_by_child in (its_readers, its_orders):
            held_by_child.close()
        for pipes, pipe in ((self._readers, readers), (self._orders, orders)):
            if policy_id in pipes:
                pipes[policy_id].close()
            pipes[policy_id] = pipe
        return child

    def policy_worker(self, idx: int) -> Child:
        learners_end, policy_end = multiprocessing.Pipe()
        self._count_start(f"policy-{idx}")
        args = self._memory.policy_worker_args(idx, policy_end)
        child = start_child(NETWORKS, "policy", idx, (), self._policy_body, args)
        readers = self._readers[self._memory.channels.policy_of(idx)]
        with suppress(OSError):  # the learner has died, which is seen next, and takes this one with it
            reduction.send_handle(readers, learners_end.fileno(), None)
        learners_end.close()
        policy_end.close()
        return child

    def evaluator(self) -> Child:
        """Not one of `all`: it is not part of the sampler."""
        self._count_start("evaluator-0")
        args = self._memory.evaluator_args()
        return start_child(NETWORKS, "evaluator", 0, (args.orders,), evaluator, args)

    def order(self, policy_id: int, **order: Any) -> None:
        """Tell the learner of a policy what was decided. One that has died hears of it in its successor's arguments."""
        with suppress(OSError):
            self._orders[policy_id].send_bytes(json.dumps(order).encode())

    def _count_start(self, name: str) -> int:
        """How often a child of that name has been started before."""
        before = self._starts[name]
        self._starts[name] += 1
        return before
