"""Starts the children of a run, at first and in the place of dead ones. Some children are replaced with the dead one.

What a dead child held is found in the shared tables: see `sf.shared.slots` and `sf.shared.requests`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sf.run.children.living import Event, LivingChildren
from sf.run.children.roles.role import Role, Start
from sf.run.children.verdict import Death, QueueLostError, failure_after
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.shared.queues import LockedQueueError
from sf.system import gpu
from sf.system.processes.child import Child, start_child
from sf.system.processes.reports import Replaced


class Starter:
    """resumed_steps: env steps of earlier parts of the run, by policy."""

    def __init__(self, memory: RunMemory, learner_orders: LearnerOrders) -> None:
        self.resumed_steps: Sequence[int] = [0] * memory.plan.num_policies
        self._memory = memory
        self._learner_orders = learner_orders
        self._starts: Counter[str] = Counter()

    def num_starts(self, child: Child) -> int:
        """Returns how often a child of that name has been started."""
        return self._starts[child.name]

    def all_of(self, roles: Sequence[Role]) -> Iterator[Child]:
        """Start all children of these roles, one after another."""
        for role in roles:
            for idx in range(role.count(self._memory.plan)):
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
        )
        self._starts[name] += 1
        child = start_child(role.server, role.name, idx, role.body, role.arguments(start))
        self._learner_orders.links.close_handed_over()
        return child


class Replacer:
    """restarts_as_one: in synchronous mode all walk in step, and one that begins anew would be waited for for ever."""

    def __init__(self, memory: RunMemory, roles: Sequence[Role], starter: Starter, living: LivingChildren) -> None:
        self.restarts_as_one = not memory.plan.config.sampler.async_rl
        self._memory = memory
        self._roles = roles
        self._starter = starter
        self._living = living

    def replace(self, child: Child, cause: str) -> tuple[list[Event], Exception | None]:
        """A child has been buried. Returns what is said of it, and why the run cannot go on, if so."""
        victims = self._victims_of(child)
        events = [event for victim in victims for event in self._living.kill(victim)]
        for victim in victims:
            if self._memory.queues.may_be_locked_by(victim.process.pid):
                return events, failure_after(Death(victim.name, cause, may_have_locked=True))
        dead = [child, *victims]
        lost = sum(self._living.role_of(one).episodes_at_once(self._memory, one.idx) for one in dead)
        try:
            self._recover_and_start(child, dead)
        except LockedQueueError as error:
            return events, QueueLostError(str(error), cause)
        with_it = f", and with it {', '.join(victim.name for victim in victims)}" if victims else ""
        return [*events, (child, Replaced(f"{cause}. Replaced{with_it}", lost))], None

    def _recover_and_start(self, child: Child, dead: Iterable[Child]) -> None:
        memory = self._memory
        if self.restarts_as_one and not self._living.is_optional(child):
            memory.channels.reset()
            memory.pool.reset()  # tells of the free slots
            needed = [role for role in self._roles if not role.is_optional]
            self._living.add(self._starter.all_of(needed))
            return
        for one in dead:  # first the child itself: its victims need it
            role = self._living.role_of(one)
            role.recover(memory, one.idx)
            self._living.add([self._starter.start(role, one.idx)])

    def _victims_of(self, child: Child) -> list[Child]:
        """Returns the children that are replaced with it."""
        living = self._living
        if living.is_optional(child):
            return []
        if self.restarts_as_one:
            return [other for other in living if not living.is_optional(other)]
        # Those that use its memory on the GPU, or still wait for it.
        memory, is_on_gpu = self._memory, self._memory.plan.device != gpu.HOST
        dependants = [other for other in living if living.role_of(other).needs(memory, other.idx) == child.name]
        return [other for other in dependants if is_on_gpu or not other.is_ready]
