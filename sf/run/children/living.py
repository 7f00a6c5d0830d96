"""The children that have been started and not buried, with what each has said and left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto

from sf.run.children.roles.role import Role
from sf.run.memory import RunMemory
from sf.system import gpu
from sf.system.processes.child import Child
from sf.system.processes.reports import Episodes, Failed, LearnerFinished, Ready, Report, Saving, Unreported

Event = tuple[Child, Report]
"""A report of a child, or one that the parent makes of it."""


class Phase(Enum):
    """The phase that a learner is in."""

    TRAINS = auto()
    SAVES = auto()  # for the last time
    HAS_SAVED = auto()
    IS_HOPELESS = auto()  # it has ended the run, over weights that are of no use


class LivingChildren:
    """phases: of the learners, by policy."""

    def __init__(self, memory: RunMemory, roles: Mapping[str, Role]) -> None:
        self.phases: dict[int, Phase] = {}
        self._memory = memory
        self._roles = roles
        self._children: list[Child] = []
        self._learners: dict[int, Child] = {}  # by policy, the latest
        self._reported: Counter[str] = Counter()  # episodes that have ended, by child

    def __iter__(self) -> Iterator[Child]:
        """Over those that live now: the loop may bury any of them."""
        return iter(list(self._children))

    def __contains__(self, child: object) -> bool:
        return child in self._children

    def __len__(self) -> int:
        return len(self._children)

    @property
    def are_under_way(self) -> bool:
        """Whether all that training needs are ready."""
        return bool(self._learners) and all(child.is_ready for child in self if not self.is_optional(child))

    @property
    def unsaved_learners(self) -> list[Child]:
        """The learners that have ended, or will, without word that they saved their last state, which is worth it."""
        is_unsaved = (Phase.TRAINS, Phase.SAVES)
        return [child for policy_id, child in self._learners.items() if self.phases[policy_id] in is_unsaved]

    def role_of(self, child: Child) -> Role:
        return self._roles[child.role]

    def is_optional(self, child: Child) -> bool:
        return self.role_of(child).is_optional

    def phase_of(self, child: Child) -> Phase | None:
        """None: it is no learner."""
        return self.phases[child.idx] if self.role_of(child).saves else None

    def add(self, children: Iterable[Child]) -> None:
        """Children that are being started: each counts as soon as it is there."""
        for child in children:
            self._children.append(child)
            if self.role_of(child).saves:
                self._learners[child.idx] = child
                self.phases[child.idx] = Phase.TRAINS

    def note(self, child: Child, reports: list[Report]) -> list[Event]:
        """Keep what has to be known of them later."""
        for report in reports:
            match report:
                case Episodes(episodes, lost_episodes):
                    self._reported[child.name] += len(episodes) + lost_episodes
                case Ready():
                    child.is_ready = True
                case Saving():
                    self.phases[child.idx] = Phase.SAVES
                case LearnerFinished():
                    self.phases[child.idx] = Phase.HAS_SAVED
                case Failed():
                    child.error = report
        return [(child, report) for report in reports]

    def kill(self, child: Child) -> list[Event]:
        """Returns its last reports."""
        child.process.kill()
        return self.bury(child)

    def bury(self, child: Child) -> list[Event]:
        """It has ended. Returns its last reports, and how many episodes it had not reported: they are lost."""
        events = self.note(child, child.join())
        if self._memory.plan.device != gpu.HOST:
            assert child.process.pid is not None  # it was started
            gpu.forget_killed(child.process.pid)
        self._children.remove(child)
        counters = self._memory.counter_row(child.role, child.idx)
        counters.resting()
        finished = int(counters.get("episodes"))
        lost = finished - self._reported[child.name]
        self._reported[child.name] = finished
        return [*events, (child, Unreported(lost))] if lost else events
