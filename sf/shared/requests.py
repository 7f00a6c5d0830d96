"""How groups of environments and policy workers find each other: the shared tables and queues of the sampler.

A request is the index of a group. Which slots and which row it means, and which policy plays which actor, stands in the
tables, which the rollout worker writes before it sends the request: to a policy worker of each policy that plays in the
group. The answer, sent to the inbox of the group's worker, is the index of the group too.

Each group numbers its requests to each policy: `asked` is the number of the latest, `answered` that of the latest
answer. They say what is the case; a message only says "look at this group". So a message too many does no harm, and one
that a dead process did not send, or took with it, can be sent again. All requests of a group to a policy go to the same
policy worker, which therefore has always written the last of an old answer before it reads a new request. The worker of
another policy may still be at a request of a rollout worker that has died when the next one has cast those slots anew:
so with several policies each looks at the numbers once more before it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sf.shared.queues import PIPES, IndexQueue, Queues
from sf.system.arrays import Field, SharedArrays


@dataclass(frozen=True)
class Channels:
    """The plumbing of the sampler; what the parent holds. P policies, G groups of N actors.

    tables: `slots` [G, N] the slots that group g fills (in training by search the places of its leaves, of which
        `policy` says which are asked about), `row` [G] the row that awaits actions, `policy` [G, N] who
        plays each actor, `asked` and `answered` [P, G] the numbers of requests. Who plays is a policy, or P + s for the
        player in seat s (`sf.shared.seats`). All seats are asked as one, like a policy with the number P: where there
        are seats, `asked` and `answered` are [P + 1, G].
    requests: one queue a policy worker, group indices; W a policy, those of policy p from p x W on. Group g asks the
        one at g modulo W of them. Where there are seats, the last queue is that of the player worker.
    inboxes: one queue a rollout worker, indices of its groups: "look at this group". Its actions may be there, or a
        slot of it is free (`sf.shared.slots`).
    """

    tables: SharedArrays
    requests: tuple[IndexQueue, ...]
    inboxes: tuple[IndexQueue, ...]
    groups_per_worker: int
    actors_per_group: int
    num_policies: int
    policy_workers_per_policy: int
    asks_for_some: bool = False

    @classmethod
    def allocate(
        cls,
        *,
        num_workers: int,
        groups_per_worker: int,
        slots_per_group: int,
        actors_per_group: int,
        policy_workers_per_policy: int,
        num_policies: int = 1,
        has_seats: bool = False,
        asks_for_some: bool = False,
        queues: Queues = PIPES,
    ) -> Channels:
        """asks_for_some: a request is about those of its N rows that `policy` names, even if there is one policy."""
        num_groups = num_workers * groups_per_worker
        num_asked = num_policies + has_seats
        tables = SharedArrays(
            [
                Field("slots", (num_groups, actors_per_group), np.int32),
                Field("row", (num_groups,), np.int32),
                Field("policy", (num_groups, actors_per_group), np.int32),
                Field("asked", (num_asked, num_groups), np.int64),
                Field("answered", (num_asked, num_groups), np.int64),
            ]
        )
        num_askable = num_policies * policy_workers_per_policy + has_seats
        requests = tuple(queues.make(2 * num_groups) for _ in range(num_askable))
        # Of each group an answer of each policy, and each of its slots given back alone; twice, where it is told again.
        capacity = 2 * groups_per_worker * (num_asked + slots_per_group)
        inboxes = tuple(queues.make(capacity) for _ in range(num_workers))
        return cls(
            tables,
            requests,
            inboxes,
            groups_per_worker,
            actors_per_group,
            num_policies,
            policy_workers_per_policy,
            asks_for_some,
        )

    @property
    def player_worker_idx(self) -> int:
        """Which number the player worker has among those that are asked, behind all policy workers."""
        return self.num_policies * self.policy_workers_per_policy

    def policy_of(self, policy_worker_idx: int) -> int:
        """The policy that a policy worker computes; P for the player worker."""
        return policy_worker_idx // self.policy_workers_per_policy

    def of_worker(self, worker_idx: int) -> WorkerChannel:
        return WorkerChannel(
            self.tables,
            self.requests,
            self.inboxes[worker_idx],
            self._groups_of_worker(worker_idx),
            self.actors_per_group,
            self.policy_workers_per_policy,
        )

    def of_policy_worker(self, policy_worker_idx: int) -> PolicyChannel:
        return PolicyChannel(
            self.tables,
            self.requests[policy_worker_idx],
            self.inboxes,
            self.groups_per_worker,
            self.actors_per_group,
            num_groups=len(self._groups_of(policy_worker_idx)),
            policy_id=self.policy_of(policy_worker_idx),
            num_policies=self.num_policies,
            is_only_policy=len(self.tables["asked"]) == 1 and not self.asks_for_some,
        )

    def reset(self) -> None:
        """No group waits for anything. Only while neither a rollout worker nor a policy worker lives."""
        for queue in (*self.requests, *self.inboxes):
            queue.drain()
        self.tables["answered"][:] = self.tables["asked"]

    def recover_worker(self, worker_idx: int) -> None:
        """After the death of a rollout worker: nobody waits for its answers. A late one does no harm."""
        own = list(self._groups_of_worker(worker_idx))
        self.tables["answered"][:, own] = self.tables["asked"][:, own]

    def groups_with_answers(self, worker_idx: int) -> list[int]:
        """The groups of a rollout worker that have an answer to all that they have asked."""
        is_open = (self.tables["asked"] != self.tables["answered"]).any(axis=0)
        return [group_idx for group_idx in self._groups_of_worker(worker_idx) if not is_open[group_idx]]

    def has_open_requests(self, policy_worker_idx: int) -> bool:
        groups = list(self._groups_of(policy_worker_idx))
        return bool(self._is_open(self.policy_of(policy_worker_idx))[groups].any())

    def recover_policy_worker(self, policy_worker_idx: int) -> None:
        """After the death of a policy worker: what it had not answered is asked again, what it had is told again."""
        groups = self._groups_of(policy_worker_idx)
        self.requests[policy_worker_idx].drain()  # before the look at the table: later requests stay
        is_open = self._is_open(self.policy_of(policy_worker_idx))
        self.requests[policy_worker_idx].put_many(g for g in groups if is_open[g])
        for group_idx in groups:
            if not is_open[group_idx]:
                self.inboxes[group_idx // self.groups_per_worker].put(group_idx)

    def _groups_of_worker(self, worker_idx: int) -> range:
        first = worker_idx * self.groups_per_worker
        return range(first, first + self.groups_per_worker)

    def _groups_of(self, policy_worker_idx: int) -> range:
        step = 1 if policy_worker_idx == self.player_worker_idx else self.policy_workers_per_policy
        return range(policy_worker_idx % step, len(self.tables["row"]), step)

    def _is_open(self, policy_id: int) -> np.ndarray:
        """Which groups [G] wait for an answer of this policy."""
        return self.tables["asked"][policy_id] != self.tables["answered"][policy_id]


@dataclass(frozen=True)
class WorkerChannel:
    """The side of a rollout worker."""

    tables: SharedArrays
    requests: tuple[IndexQueue, ...]
    inbox: IndexQueue
    groups: range  # that are stepped by this worker
    actors_per_group: int
    policy_workers_per_policy: int
    _waiting: dict[int, list[int]] = field(default_factory=dict)  # group that has asked: policies that it has asked

    def ask(self, group_idx: int, row: int, policy_ids: Iterable[int] = (0,)) -> None:
        """Ask these policies for the actions of a row of the slots that stand in the table."""
        self.tables["row"][group_idx] = row
        self._waiting[group_idx] = list(policy_ids)
        num_workers, last = self.policy_workers_per_policy, len(self.requests) - 1
        for policy_id in self._waiting[group_idx]:
            self.tables["asked"][policy_id, group_idx] += 1
            # Of the seats there is one worker alone, behind all the others.
            self.requests[min(last, policy_id * num_workers + group_idx % num_workers)].put(group_idx)

    def wait(self) -> list[int]:
        """Wait for groups to look at: an answer may be there, or a free slot. Raises StopRequested."""
        return list(dict.fromkeys(self.inbox.get_many()))

    def take(self, groups: Iterable[int]) -> list[int]:
        """Those of `groups` all of whose actions have come, possibly none."""
        asked, answered = self.tables["asked"], self.tables["answered"]
        taken = []
        for group_idx in groups:
            policy_ids = self._waiting.get(group_idx, ())
            if policy_ids and all(answered[p, group_idx] == asked[p, group_idx] for p in policy_ids):
                del self._waiting[group_idx]
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
    policy_id: int  # P in the player worker
    num_policies: int  # P
    is_only_policy: bool  # there are no seats either, and each request is about all of its rows

    def take(self, at_least: int = 1) -> np.ndarray:
        """Groups [G] that want an answer, in ascending order; waits for `at_least` of them. Raises StopRequested."""
        taken: set[int] = set()
        while len(taken) < at_least:
            taken |= self.look()
        return np.array(sorted(taken))

    def look(self) -> set[int]:
        """Wait for messages. Returns the groups that they are about and that want an answer, possibly none."""
        asked, answered = self.tables["asked"], self.tables["answered"]
        p = self.policy_id
        return {g for g in self.requests.get_many() if asked[p, g] != answered[p, g]}

    def numbers(self, groups: np.ndarray) -> np.ndarray:
        """The numbers [G] of the latest requests of `groups` [G]."""
        return self.tables["asked"][self.policy_id, groups]

    def rows(self, groups: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slots, rows and request numbers [N] of the actors of `groups` [G] that this policy plays."""
        slots = self.tables["slots"][groups].reshape(-1)
        rows = np.repeat(self.tables["row"][groups], self.actors_per_group)
        numbers = np.repeat(numbers, self.actors_per_group)
        if self.is_only_policy:
            return slots, rows, numbers
        own = self.tables["policy"][groups].reshape(-1) == self.policy_id
        return slots[own], rows[own], numbers[own]

    def rows_by_seat(
        self, groups: np.ndarray, numbers: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """In the player worker: each seat that plays in `groups` [G], with what `rows` gives, of its actors."""
        who = self.tables["policy"][groups].reshape(-1)
        slots = self.tables["slots"][groups].reshape(-1)
        rows = np.repeat(self.tables["row"][groups], self.actors_per_group)
        numbers = np.repeat(numbers, self.actors_per_group)
        for played_by in np.unique(who[who >= self.num_policies]).tolist():
            own = who == played_by
            yield played_by - self.num_policies, slots[own], rows[own], numbers[own]

    def still_asked(self, actors: np.ndarray, numbers: np.ndarray) -> np.ndarray | slice:
        """Which of the requests `numbers` [N] of `actors` [N] are open: not those of a worker that died meanwhile."""
        if self.is_only_policy:
            return slice(None)
        return self.tables["answered"][self.policy_id, actors // self.actors_per_group] < numbers

    def answer(self, groups: np.ndarray, numbers: np.ndarray) -> None:
        """Tell that the requests `numbers` [G] of `groups` [G] are answered."""
        answered = self.tables["answered"]
        answered[self.policy_id, groups] = np.maximum(answered[self.policy_id, groups], numbers)
        for group_idx in groups.tolist():
            self.inboxes[group_idx // self.groups_per_worker].put(group_idx)
