"""How groups of actors and policy workers find each other: the shared tables and queues of the sampler.

A request is the index of a group. Which slots and which row it means stands in the tables, which the rollout worker
writes before it sends the request. The answer, sent to the inbox of the group's worker, is the index of the group too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sf.memory import Field, SharedArrays
from sf.queues import IndexQueue


@dataclass(frozen=True)
class Channels:
    """The plumbing of the sampler of one policy.

    tables: `slots` [G, N] the slots that group g fills, `row` [G] the row that awaits an action.
    requests: group indices, from rollout workers to policy workers.
    inboxes: one queue a rollout worker, group indices whose actions are there.
    """

    tables: SharedArrays
    requests: IndexQueue
    inboxes: tuple[IndexQueue, ...]
    groups_per_worker: int
    actors_per_group: int

    @classmethod
    def allocate(cls, num_workers: int, groups_per_worker: int, actors_per_group: int) -> Channels:
        num_groups = num_workers * groups_per_worker
        tables = SharedArrays(
            [Field("slots", (num_groups, actors_per_group), np.int32), Field("row", (num_groups,), np.int32)]
        )
        inboxes = tuple(IndexQueue(groups_per_worker) for _ in range(num_workers))
        return cls(tables, IndexQueue(num_groups), inboxes, groups_per_worker, actors_per_group)

    @property
    def num_groups(self) -> int:
        return len(self.tables["row"])

    @property
    def num_actors(self) -> int:
        return self.num_groups * self.actors_per_group
