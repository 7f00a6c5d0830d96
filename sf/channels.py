"""How groups of environments and policy workers find each other: the shared tables and queues of the sampler.

A request is the index of a group. Which slots and which row it means stands in the tables, which the rollout worker
writes before it sends the request. The answer, sent to the inbox of the group's worker, is the index of the group too.

Each group numbers its requests: `asked` is the number of the latest, `answered` that of the latest answer. They say
what is the case; a message only says "look at this group". So a message too many does no harm, and one that a dead
process did not send, or took with it, can be sent again. All requests of a group go to the same policy worker, which
therefore has always written the last of an old answer before it reads a new request.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sf.memory import Field, SharedArrays
from sf.queues import IndexQueue


@dataclass(frozen=True)
class Channels:
    """The plumbing of the sampler of one policy; what the parent holds.

    tables: `slots` [G, N] the slots that group g fills, `row` [G] the row that awaits an action, `asked` and `answered`
        [G] the numbers of requests.
    requests: one queue a policy worker, group indices. Group g asks policy worker g modulo their number.
    inboxes: one queue a rollout worker, group indices whose actions are there.
    """

    tables: SharedArrays
    requests: tuple[IndexQueue, ...]
    inboxes: tuple[IndexQueue, ...]
    groups_per_worker: int
    actors_per_group: int

    @classmethod
    def allocate(
        cls, *, num_workers: int, groups_per_worker: int, actors_per_group: int, num_policy_workers: int
    ) -> Channels:
        num_groups = num_workers * groups_per_worker
        tables = SharedArrays(
            [
                Field("slots", (num_groups, actors_per_group), np.int32),
                Field("row", (num_groups,), np.int32),
                Field("asked", (num_groups,), np.int64),
                Field("answered", (num_groups,), np.int64),
            ]
        )
        requests = tuple(IndexQueue(2 * num_groups) for _ in range(num_policy_workers))
        inboxes = tuple(IndexQueue(2 * groups_per_worker) for _ in range(num_workers))
        return cls(tables, requests, inboxes, groups_per_worker, actors_per_group)

    def of_worker(self, worker_idx: int) -> WorkerChannel:
        first = worker_idx * self.groups_per_worker
        groups = range(first, first + self.groups_per_worker)
        return WorkerChannel(self.tables, self.requests, self.inboxes[worker_idx], groups, self.actors_per_group)

    def of_policy_worker(self, policy_worker_idx: int) -> PolicyChannel:
        return PolicyChannel(
            self.tables,
            self.requests[policy_worker_idx],
            self.inboxes,
            self.groups_per_worker,
            self.actors_per_group,
            num_groups=len(self._groups_of(policy_worker_idx)),
        )

    def reset(self) -> None:
        """No group waits for anything. Only while neither a rollout worker nor a policy worker lives."""
        for queue in (*self.requests, *self.inboxes):
            queue.drain()
        self.tables["answered"][:] = self.tables["asked"]

    def recover_worker(self, worker_idx: int) -> None:
        """After the death of a rollout worker: nobody waits for its answers. A late one does no harm."""
        own = slice(worker_idx * self.groups_per_worker, (worker_idx + 1) * self.groups_per_worker)
        self.tables["answered"][own] = self.tables["asked"][own]

    def has_open_requests(self, policy_worker_idx: int) -> bool:
        groups = list(self._groups_of(policy_worker_idx))
        return bool((self.tables["asked"][groups] != self.tables["answered"][groups]).any())

    def recover_policy_worker(self, policy_worker_idx: int) -> None:
        """After the death of a policy worker: what it had not answered is asked again, what it had is told again."""
        groups = self._groups_of(policy_worker_idx)
        self.requests[policy_worker_idx].drain()  # before the look at the table: later requests stay
        is_open = self.tables["asked"] != self.tables["answered"]
        self.requests[policy_worker_idx].put_many(g for g in groups if is_open[g])
        for group_idx in groups:
            if not is_open[group_idx]:
                self.inboxes[group_idx // self.groups_per_worker].put(group_idx)

    def _groups_of(self, policy_worker_idx: int) -> range:
        return range(policy_worker_idx, len(self.tables["row"]), len(self.requests))


@dataclass(frozen=True)
class WorkerChannel:
    """The side of a rollout worker."""

    tables: SharedArrays
    requests: tuple[IndexQueue, ...]
    inbox: IndexQueue
    groups: range  # that are stepped by this worker
    actors_per_group: int
    _waiting: set[int] = field(default_factory=set)  # groups that have asked

    def ask(self, group_idx: int, row: int) -> None:
        """Ask for the actions of a row of the slots that stand in the table."""
        self.tables["row"][group_idx] = row
        self.tables["asked"][group_idx] += 1
        self._waiting.add(group_idx)
        self.requests[group_idx % len(self.requests)].put(group_idx)

    def take(self) -> list[int]:
        """Groups whose actions have come, possibly none. Raises StopRequested."""
        asked, answered = self.tables["asked"], self.tables["answered"]
        taken = []
        for group_idx in self.inbox.get_many_nowait():
            if group_idx in self._waiting and answered[group_idx] == asked[group_idx]:
                self._waiting.remove(group_idx)
                taken.append(group_idx)
        return taken


@dataclass(frozen=True)
class PolicyChannel:
    """The side of a policy worker."""

    tables: SharedArrays
    requests: IndexQueue
    inboxes: tuple[IndexQueue, ...]
    groups_per_worker: int
    actors_per_group: int
    num_groups: int  # that ask this worker

    def take(self, at_least: int = 1) -> np.ndarray:
        """Groups [G] that want an answer, in ascending order; waits for `at_least` of them. Raises StopRequested."""
        asked, answered = self.tables["asked"], self.tables["answered"]
        taken: set[int] = set()
        while len(taken) < at_least:
            taken |= {g for g in self.requests.get_many() if asked[g] != answered[g]}
        return np.array(sorted(taken))

    def answer(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        """Tell that the requests `numbers` [G] of `groups` [G] are answered."""
        self.tables["answered"][groups] = numbers
        for group_idx in groups.tolist():
            self.inboxes[group_idx // self.groups_per_worker].put(group_idx)
