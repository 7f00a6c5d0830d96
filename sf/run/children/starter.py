"""Starts the children of a run, at first and in the place of dead ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sf.run.children.roles.role import Role, Start
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.system.processes.child import Child, start_child


class Starter:
    """resumed_steps: env steps of earlier parts of the run, by policy. resumed_episodes: see `Start`."""

    def __init__(self, memory: RunMemory, learner_orders: LearnerOrders) -> None:
        self.resumed_steps: Sequence[int] = [0] * memory.plan.num_policies
        self.resumed_episodes = 0
        self._memory = memory
        self._learner_orders = learner_orders
        self._starts: Counter[str] = Counter()

    def num_starts(self, child: Child) -> int:
        """Returns how often a child of that name has been started."""
        return self._starts[child.name]

    def all_of(self, roles: Sequence[Role], is_interrupted: Callable[[], bool]) -> Iterator[Child]:
        """Start all children of these roles, one after another."""
        for role in roles:
            for idx in range(role.count(self._memory.plan)):
                if is_interrupted():
                    return
                yield self.start(role, idx)

    def start(self, role: Role, idx: int) -> Child:
        name = f"{role.name}-{idx}"
        start = Start(
            idx,
            self._starts[name],
            self._memory,
            self._learner_orders.links,
            self.resumed_steps,
            self._learner_orders.hyperparameters,
            self.resumed_episodes,
        )
        self._starts[name] += 1
        child = start_child(role.server, role.name, idx, role.body, role.arguments(start))
        self._learner_orders.links.close_handed_over()
        return child
