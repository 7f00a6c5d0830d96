"""The children of a run: started, watched, replaced where they die or hang, and ended.

Consumes   reports of the children, their deaths, their heartbeats.
Produces   reports for the run; new children in the place of dead ones; a stop in every queue at the end.
Waits for  a report or a death.

What a dead child held is found in the shared tables: see `sf.slots` and `sf.requests`. What differs from one kind of
child to the next stands in its role: see `sf.run.children.role`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from multiprocessing import connection
from multiprocessing.connection import Connection

from sf import gpu
from sf.processes import fork_servers
from sf.processes.child import Child
from sf.processes.reports import (
    Episodes,
    Failed,
    GivenUp,
    Killed,
    LearnerFinished,
    Ready,
    Replaced,
    Report,
    SavedFor,
    Saving,
    Say,
    Unreported,
)
from sf.processes.stopping import Signals
from sf.queues import LockedQueueError
from sf.run.children.last_save import save_for_learner
from sf.run.children.restarts import RestartBudget
from sf.run.children.role import Role
from sf.run.children.starter import Starter
from sf.run.children.table import ROLES
from sf.run.children.verdict import ChildError, Death, QueueLostError, failure_after
from sf.run.children.watchdog import Watchdog
from sf.run.memory import RunMemory
from sf.storage import checkpoint_names

_STOP_WITHIN_S = 5.0
OPTIONAL_WITHIN_S = 60.0  # the evaluator: a video
_FINISH_WITHIN_S = 120.0  # the learner: an iteration, and the last checkpoint

Event = tuple[Child, Report]
"""What a child has said, or the supervisor says of it."""


class _Phase(Enum):
    """Of a policy's learner."""

    TRAINS = auto()
    SAVES = auto()  # for the last time
    HAS_SAVED = auto()
    IS_HOPELESS = auto()  # it has ended the run, over weights that are of no use


class Supervisor:
    """failure: why the run cannot go on, if so."""

    def __init__(self, memory: RunMemory, roles: Sequence[Role] = ROLES) -> None:
        self.failure: Exception | None = None
        self.starter = Starter(memory)
        self._memory = memory
        self._roles = {role.name: role for role in roles}
        self._watchdog = Watchdog(memory, self._roles)
        self._phases: dict[int, _Phase] = {}  # of the learners, by policy
        config = memory.plan.config.supervision
        self._budget = RestartBudget(config.max_restarts, config.restart_window_s)
        self._children: list[Child] = []
        self._is_stopping = False
        self._is_cut_off = False  # from another rank
        self._is_optional_awaited: Callable[[], bool] = lambda: False
        self._reported: Counter[str] = Counter()  # episodes that have ended, by child
        self._learners: dict[int, Child] = {}  # by policy, the latest
        self._check_every_s = min(1.0, config.worker_timeout_s / 5)

    @property
    def is_finished(self) -> bool:
        """Whether all learners have saved for the last time."""
        return bool(self._phases) and all(phase is _Phase.HAS_SAVED for phase in self._phases.values())

    @property
    def is_under_way(self) -> bool:
        """Whether all processes that training needs are ready."""
        return bool(self._learners) and all(child.is_ready for child in self._children if not self._is_optional(child))

    def start(self, is_interrupted: Callable[[], bool]) -> None:
        """Start all children."""
        fork_servers.start_for_training()
        self._start_all(list(self._roles.values()), is_interrupted)

    def receive(self, wakeup: Connection, timeout_s: float) -> list[Event]:
        """Wait for reports, deaths or a wake-up, at most this long; replace what has died."""
        fork_servers.unsuspend_all()
        pipes = [child.connection for child in self._children if not child.connection.closed]
        sentinels = [child.process.sentinel for child in self._children]
        ready = connection.wait([*pipes, *sentinels, wakeup], min(timeout_s, self._check_every_s))
        events: list[Event] = []
        for child in list(self._children):
            if child.connection in ready or child.process.sentinel in ready:
                events += self._noted(child, child.receive())
        for child in list(self._children):
            if child.process.sentinel in ready and child in self._children:
                events += self._bury(child)
        if not self._is_stopping:
            self._watchdog.kill_what_hangs(self._children)
        return events

    def stop(self, signals: Signals, is_optional_awaited: Callable[[], bool] = lambda: False) -> Iterable[Event]:
        """Ask every process to end, wait for it, and kill what does not. Yields the last reports.

        is_optional_awaited: whether the processes that training does without are at work that is worth a wait.
        """
        self._is_stopping = True
        self._memory.stop.set(by_signal=signals.first is not None)
        self._is_optional_awaited = is_optional_awaited
        for child in self._children:
            if not self._is_optional(child):
                self._roles[child.role].queue(self._memory, child.idx).stop()
        asked_at = time.monotonic()
        try:
            while self._children:
                for child in [c for c in self._children if not self._may_go_on(c, asked_at, signals)]:
                    yield from self._kill(child)
                    if not self._is_optional(child):
                        yield child, Killed()
                yield from self.receive(signals.wakeup, timeout_s=0.5)
                signals.clear_wakeup()
        finally:  # also where the caller fails over a report: the interpreter would wait for them at its end
            for child in list(self._children):
                self._kill(child)
        for policy_id, learner_child in self._learners.items():
            if self._phases[policy_id] in (_Phase.TRAINS, _Phase.SAVES):
                yield from self._save_for(learner_child)

    def _may_go_on(self, child: Child, asked_at: float, signals: Signals) -> bool:
        if self._is_optional(child):
            is_awaited = self._is_optional_awaited() and signals.first is None and self.failure is None
            return is_awaited and time.monotonic() - asked_at < OPTIONAL_WITHIN_S
        # Who has sent a signal waits for no iteration that is long, or hangs; nor is one waited for that may hang.
        may_hang = self._is_cut_off or isinstance(self.failure, QueueLostError)
        is_free_to_save = signals.first is None and not may_hang
        saves = self._roles[child.role].saves
        is_awaited = saves and (is_free_to_save or self._phases[child.idx] is not _Phase.TRAINS)
        patience_s = _FINISH_WITHIN_S if is_awaited else _STOP_WITHIN_S
        return not signals.is_urgent and time.monotonic() - asked_at < patience_s

    def _save_for(self, child: Child) -> Iterable[Event]:
        """A learner has ended, and not said that it saved its last state: the one it remembered is all there is."""
        said: list[str] = []
        try:
            saved = save_for_learner(self._memory, child.idx, said.append)
        except (OSError, ValueError) as error:
            self.failure = self.failure or _unsaved(child, error)
            return
        yield from ((child, Say(text)) for text in said)
        if saved is not None:
            yield child, SavedFor(str(saved), checkpoint_names.env_steps(saved))

    # Watching

    def _start_all(self, roles: Sequence[Role], is_interrupted: Callable[[], bool] = lambda: False) -> None:
        for child in self.starter.all_of(roles, is_interrupted):
            self._add(child)

    def _add(self, child: Child) -> None:
        self._children.append(child)
        if self._roles[child.role].saves:
            self._learners[child.idx] = child
            self._phases[child.idx] = _Phase.TRAINS

    def _is_optional(self, child: Child) -> bool:
        return self._roles[child.role].is_optional

    def _noted(self, child: Child, reports: list[Report]) -> list[Event]:
        for report in reports:
            self._note(child, report)
        return [(child, report) for report in reports]

    def _note(self, child: Child, report: Report) -> None:
        match report:
            case Episodes(episodes, lost_episodes):
                self._reported[child.name] += len(episodes) + lost_episodes
            case Ready():
                child.is_ready = True
            case Saving():
                self._phases[child.idx] = _Phase.SAVES
            case LearnerFinished():
                self._phases[child.idx] = _Phase.HAS_SAVED
            case Failed():
                child.error = report

    def _bury(self, child: Child) -> list[Event]:
        """A child has ended. One that was not asked to has failed, whatever its exit code."""
        events = self._last_of(child)
        cause = child.cause_of_death()
        if self._is_stopping or self.is_finished or self.failure:
            return events
        return [*events, *self._fail_or_replace(child, cause)]

    def _fail_or_replace(self, child: Child, cause: str) -> list[Event]:
        self.failure = failure_after(self._death_of(child, cause))
        if self.failure is not None:
            is_hopeless = isinstance(self.failure, ChildError) and self.failure.is_final
            if is_hopeless and self._phases.get(child.idx) is _Phase.TRAINS and self._roles[child.role].saves:
                self._phases[child.idx] = _Phase.IS_HOPELESS
            return []
        if not self._budget.spend(child.name, time.monotonic()):
            return self._give_up(child, cause)
        return self._replace(child, cause)

    def _death_of(self, child: Child, cause: str) -> Death:
        role, place = self._roles[child.role], self._memory.plan.place
        takes_the_learner = role.saves or (self._restarts_as_one and not role.is_optional)
        return Death(
            child.name,
            cause,
            error=child.error,
            exit_code=child.process.exitcode,
            was_ready=child.is_ready,
            is_first=self.starter.num_starts(child) == 1,
            is_optional=role.is_optional,
            may_have_locked=self._memory.queues.may_be_locked_by(child.process.pid),
            rank=place.rank if takes_the_learner and not place.is_alone else None,
        )

    def cut_off(self, why: str) -> None:
        """Another rank has gone without a word. The learner may wait for it for ever."""
        self._is_cut_off = True
        self.failure = self.failure or ChildError(f"{why}: all ranks end, and torchrun may start them again")

    def _give_up(self, child: Child, cause: str) -> list[Event]:
        """It has died too often."""
        text = (
            f"{child.name} has died {self._budget.max_restarts + 1} times within {self._budget.window_s:g} s "
            f"(--max_restarts, --restart_window_s), at last: {cause}"
        )
        if self._is_optional(child):
            return [(child, GivenUp(text))]
        self.failure = ChildError(text)
        return []

    # Replacing

    def _replace(self, child: Child, cause: str) -> list[Event]:
        memory = self._memory
        victims = self._to_replace_with(child)
        events = [event for victim in victims for event in self._kill(victim)]
        dead = [child, *victims]
        for victim in victims:
            if self._memory.queues.may_be_locked_by(victim.process.pid):
                self.failure = failure_after(Death(victim.name, cause, may_have_locked=True))
                return events
        try:
            self._recover_and_start(child, dead)
        except LockedQueueError as error:
            self.failure = QueueLostError(str(error), cause)
            return events
        with_it = f", and with it {', '.join(victim.name for victim in victims)}" if victims else ""
        lost = sum(self._roles[one.role].episodes_at_once(memory.plan) for one in dead)
        return [*events, (child, Replaced(f"{cause}. Replaced{with_it}", lost))]

    def _recover_and_start(self, child: Child, dead: Iterable[Child]) -> None:
        memory = self._memory
        if self._restarts_as_one and not self._is_optional(child):
            memory.channels.reset()
            memory.pool.reset()  # tells of the free slots
            self._start_all([role for role in self._roles.values() if not role.is_optional])
            return
        for one in dead:  # first the child itself: its victims need it
            role = self._roles[one.role]
            role.recover(memory, one.idx)
            self._add(self.starter.start(role, one.idx))

    @property
    def _restarts_as_one(self) -> bool:
        """In synchronous mode all walk in step: one that begins anew would be waited for for ever."""
        return not self._memory.plan.config.sampler.async_rl

    def _to_replace_with(self, child: Child) -> list[Child]:
        if self._is_optional(child):
            return []
        if self._restarts_as_one:
            return [other for other in self._children if not self._is_optional(other)]
        # Those that use its memory on the GPU, or still wait for it.
        memory, is_on_gpu = self._memory, self._memory.plan.device != gpu.HOST
        dependants = [c for c in self._children if self._roles[c.role].needs(memory, c.idx) == child.name]
        return [c for c in dependants if is_on_gpu or not c.is_ready]

    def _kill(self, child: Child) -> list[Event]:
        """Returns its last reports."""
        child.process.kill()
        return self._last_of(child)

    def _last_of(self, child: Child) -> list[Event]:
        """What a child that ends has left."""
        events = self._noted(child, child.join())
        if self._memory.plan.device != gpu.HOST:
            assert child.process.pid is not None  # it was started
            gpu.forget_killed(child.process.pid)
        self._children.remove(child)
        return [*events, *self._unreported(child)]

    def _unreported(self, child: Child) -> list[Event]:
        """Episodes that a dead child had finished, and not reported: they are lost."""
        finished = int(self._memory.counter_row(child.role, child.idx).get("episodes"))
        lost = finished - self._reported[child.name]
        self._reported[child.name] = finished
        return [(child, Unreported(lost))] if lost else []


def _unsaved(child: Child, error: Exception) -> ChildError:
    """Why what a learner had is lost. error: of the parent, which has tried to save it, too."""
    if child.error and child.error.is_final:  # it has said what to do
        return ChildError(f"{child.name}: {child.error.message}", is_final=True)
    return ChildError(f"{child.name} could not save what it had: {child.cause_of_death()}; {error}")
