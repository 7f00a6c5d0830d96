"""A role tells the supervisor what it has to know of a kind of child process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sf.run.learner_orders import Links
from sf.run.memory import RunMemory
from sf.run.plan import Plan
from sf.shared.queues import IndexQueue
from sf.shared.weights import SharedWeights
from sf.system.processes.fork_servers import ForkServer
from sf.system.processes.reports import Reports

Body = Callable[[Reports, Any], None]
"""Runs in the child, from its first line to its end."""


class Start(NamedTuple):
    """One start of a child."""

    idx: int
    num_before: int  # starts of this child in this run, before this one
    memory: RunMemory
    links: Links
    resumed_steps: Sequence[int]  # env steps of earlier parts of the run, by policy
    hyperparameters: Callable[[int], Mapping[str, float]]  # of a policy: those that differ from the configuration
    weights: SharedWeights | None = None  # in a serial run, those that the learner publishes


@dataclass(frozen=True)
class Role:
    """A kind of child. Functions of `(memory, idx)` are about the child of that number.

    name: the child is called `name-idx`, in messages, in the counters and in ps.
    server: the fork server that it is forked from, which has imported the module of its body: see
        `sf.run.children.servers`.
    count: children of this kind in a run.
    arguments: what its body gets, made anew for each start.
    queue: the queue that wakes it; it is stopped at the end of the run.
    owes: whether it has taken work that it has not done, as the tables say. If that, or a message that waits for it,
        stays so for long, it hangs.
    recover: puts its share of the tables in order, after it has died and before a new one starts.
    needs: the name of the child whose memory it attaches to, if any: until that one is ready it may wait, and on a GPU
        it is replaced with it.
    episodes_at_once: episodes that run in it, and are lost with it.
    saves: whether it writes at the end what it has trained, and is given the time for it. Its number is that of its
        policy, whose recovery memory the parent saves where it could not.
    starts_gradually: at most as many as there are cores start at a time, unless one takes long: those that are ready
        work while the others start.
    is_optional: training does without it. It is killed at the end, is not restarted with the others, and if it dies
        too often the run goes on.
    """

    name: str
    server: ForkServer
    body: Body
    count: Callable[[Plan], int]
    arguments: Callable[[Start], Any]
    queue: Callable[[RunMemory, int], IndexQueue]
    owes: Callable[[RunMemory, int], bool] = lambda memory, idx: False
    recover: Callable[[RunMemory, int], None] = lambda memory, idx: None
    needs: Callable[[RunMemory, int], str | None] = lambda memory, idx: None
    episodes_at_once: Callable[[RunMemory, int], int] = lambda memory, idx: 0
    saves: bool = False
    is_optional: bool = False
    starts_gradually: bool = False

    def has_work(self, memory: RunMemory, idx: int) -> bool:
        return self.owes(memory, idx) or self.queue(memory, idx).has_messages()
