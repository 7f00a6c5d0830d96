"""The children of a run: started, watched, replaced where they die or hang, and ended.

Consumes   reports of the children, their deaths, their heartbeats.
Produces   reports for the run; new children in the place of dead ones; a stop in every queue at the end.
Waits for  a report or a death.

What differs from one kind of child to the next stands in its role: see `sf.run.children.roles.role`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection

from sf.run.children.living import Event, LivingChildren, Phase
from sf.run.children.roles.role import Role
from sf.run.children.roles.table import ROLES
from sf.run.children.servers import start_fork_servers
from sf.run.children.starter import Replacer, Starter
from sf.run.children.verdict import ChildError, Death, QueueLostError, RestartBudget, RestartBudgets, failure_after
from sf.run.children.watchdog import Watchdog
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.run.parent_saves import save_for_learner
from sf.storage import checkpoint_names
from sf.system.messages import said_to
from sf.system.processes.child import Child
from sf.system.processes.reports import GivenUp, Killed, SavedFor, Say
from sf.system.processes.stopping import Signals

_START_ANOTHER_AFTER_S = 3.0
_STOP_WITHIN_S = 5.0
OPTIONAL_WITHIN_S = 60.0  # the evaluator: a video
_FINISH_WITHIN_S = 120.0  # the learner: an iteration, and the last checkpoint


class Supervisor:
    """failure: why the run cannot go on, if so."""

    def __init__(self, memory: RunMemory, learner_orders: LearnerOrders, roles: Sequence[Role] = ROLES) -> None:
        self.failure: Exception | None = None
        self.starter = Starter(memory, learner_orders)
        self._memory = memory
        self._roles = roles
        by_name = {role.name: role for role in roles}
        self._living = LivingChildren(memory, by_name)
        self._replacer = Replacer(memory, roles, self.starter, self._living)
        self._watchdog = Watchdog(memory, by_name)
        config = memory.plan.config.supervision
        self._budgets = RestartBudgets(config.max_restarts, config.restart_window_s, self._watchdog.start_within_s)
        self._unstarted: deque[tuple[Role, int]] = deque()  # children of roles that start gradually
        self._started_one_at = 0.0
        self._is_stopping = False
        self._is_cut_off = False  # from another rank
        self._is_kept_from_saving = False  # by another run
        self._is_optional_awaited: Callable[[], bool] = lambda: False
        self._check_every_s = min(1.0, config.worker_timeout_s / 5)

    @property
    def is_finished(self) -> bool:
        """Whether all learners have saved for the last time."""
        phases = self._living.phases.values()
        return bool(phases) and all(phase is Phase.HAS_SAVED for phase in phases)

    @property
    def is_under_way(self) -> bool:
        """Whether all processes that training needs are ready."""
        return not self._unstarted and self._living.are_under_way

    def resume(self, env_steps: Sequence[int]) -> None:
        """The run goes on with earlier parts. env_steps: of these, by policy."""
        self.starter.resumed_steps = env_steps

    def start(self, is_interrupted: Callable[[], bool]) -> None:
        """Start all children, some of them later: see `Role.starts_gradually`."""
        start_fork_servers()
        self._started_one_at = time.monotonic()
        plan = self._memory.plan
        for role in self._roles:
            at_once = plan.num_cores if role.starts_gradually and plan.config.sampler.async_rl else role.count(plan)
            for idx in range(role.count(plan)):
                if is_interrupted():
                    return
                if idx < at_once:
                    self._living.add([self.starter.start(role, idx)])
                else:
                    self._unstarted.append((role, idx))

    def _start_more(self) -> None:
        """Start one of those that start gradually where few are at it, or they take long."""
        now = time.monotonic()
        while self._unstarted and not self._is_stopping:
            role, idx = self._unstarted[0]
            starting = [child for child in self._living if child.role == role.name and not child.is_ready]
            if len(starting) >= self._memory.plan.num_cores and now - self._started_one_at < _START_ANOTHER_AFTER_S:
                return
            self._unstarted.popleft()
            self._living.add([self.starter.start(role, idx)])
            self._started_one_at = now

    def receive(self, wakeup: Connection, timeout_s: float) -> list[Event]:
        """Wait for reports, deaths or a wake-up, at most this long; replace what has died."""
        self._start_more()
        for role in self._roles:
            role.server.unsuspend()
        pipes = [child.connection for child in self._living if not child.connection.closed]
        sentinels = [child.process.sentinel for child in self._living]
        ready = connection.wait([*pipes, *sentinels, wakeup], min(timeout_s, self._check_every_s))
        events: list[Event] = []
        for child in self._living:
            if child.connection in ready or child.process.sentinel in ready:
                events += self._living.note(child, child.receive())
        for child in self._living:
            if child.process.sentinel in ready and child in self._living:
                events += self._bury(child)
        if not self._is_stopping:
            self._watchdog.kill_what_hangs(list(self._living))
        return events

    def cut_off(self, why: str) -> None:
        """Another rank has gone without a word. The learner may wait for it for ever."""
        self._is_cut_off = True
        self.failure = self.failure or ChildError(f"{why}: all ranks end, and torchrun may start them again")

    def end_if(self, why: str | None) -> None:
        """why: the run cannot go on, though no child has failed. None: it can."""
        if why is not None:
            self.failure = self.failure or ChildError(why, is_final=True)

    def kill_unsaved(self) -> None:
        """Another run has the directory by now: `stop` waits for nobody and saves nothing."""
        self._is_kept_from_saving = True
        for child in list(self._living):
            self._living.kill(child)

    def stop(self, signals: Signals, is_optional_awaited: Callable[[], bool] = lambda: False) -> Iterable[Event]:
        """Ask every process to end, wait for it, and kill what does not. Yields the last reports.

        is_optional_awaited: whether the processes that training does without are at work that is worth a wait.
        """
        living = self._living
        self._is_stopping = True
        self._memory.stop.set(by_signal=signals.first is not None, after_failure=self.failure is not None)
        self._is_optional_awaited = is_optional_awaited
        for child in living:
            if not living.is_optional(child):
                living.role_of(child).queue(self._memory, child.idx).stop()
        asked_at = time.monotonic()
        try:
            while living:
                for child in [c for c in living if not self._may_go_on(c, asked_at, signals)]:
                    yield from living.kill(child)
                    if not living.is_optional(child):
                        yield child, Killed()
                yield from self.receive(signals.wakeup, timeout_s=0.5)
                signals.clear_wakeup()
        finally:  # also where the caller fails over a report: the interpreter would wait for them at its end
            for child in living:
                living.kill(child)
        if not self._is_kept_from_saving:
            for child in living.unsaved_learners:
                yield from self._save_for(child)

    def _may_go_on(self, child: Child, asked_at: float, signals: Signals) -> bool:
        if self._living.is_optional(child):
            is_awaited = self._is_optional_awaited() and signals.first is None and self.failure is None
            return is_awaited and time.monotonic() - asked_at < OPTIONAL_WITHIN_S
        # Who has sent a signal waits for no iteration that is long, or hangs; nor is one waited for that may hang.
        may_hang = self._is_cut_off or isinstance(self.failure, QueueLostError)
        is_free_to_save = signals.first is None and not may_hang
        phase = self._living.phase_of(child)
        is_awaited = phase is not None and (is_free_to_save or phase is not Phase.TRAINS)
        patience_s = _FINISH_WITHIN_S if is_awaited else _STOP_WITHIN_S
        return not signals.is_urgent and time.monotonic() - asked_at < patience_s

    def _save_for(self, child: Child) -> Iterable[Event]:
        """A learner has ended, and not said that it saved its last state: the one it remembered is all there is."""
        said: list[str] = []
        try:
            with said_to(said.append):
                saved = save_for_learner(self._memory, child.idx)
        except (OSError, ValueError) as error:
            self.failure = self.failure or _unsaved(child, error)
            return
        yield from ((child, Say(text)) for text in said)
        if saved is not None:
            yield child, SavedFor(str(saved), checkpoint_names.env_steps(saved))

    def _bury(self, child: Child) -> list[Event]:
        """A child has ended. One that was not asked to has failed, whatever its exit code."""
        events = self._living.bury(child)
        # Of several policies on several ranks, one may end while another still trains.
        has_saved = self._living.phase_of(child) is Phase.HAS_SAVED
        if self._is_stopping or has_saved or self.is_finished or self.failure:
            return events
        return [*events, *self._fail_or_replace(child, child.cause_of_death())]

    def _fail_or_replace(self, child: Child, cause: str) -> list[Event]:
        self.failure = failure_after(self._death_of(child, cause))
        if self.failure is not None:
            is_hopeless = isinstance(self.failure, ChildError) and self.failure.is_final
            if is_hopeless and self._living.phase_of(child) is Phase.TRAINS:
                self._living.phases[child.idx] = Phase.IS_HOPELESS
            return []
        used_up = self._budgets.spend(child.name, time.monotonic(), has_hung=child.hung_for_s is not None)
        if used_up is not None:
            return self._give_up(child, cause, used_up)
        events, self.failure = self._replacer.replace(child, cause)
        return events

    def _death_of(self, child: Child, cause: str) -> Death:
        role, place = self._living.role_of(child), self._memory.plan.place
        takes_the_learner = role.saves or (self._replacer.restarts_as_one and not role.is_optional)
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

    def _give_up(self, child: Child, cause: str, budget: RestartBudget) -> list[Event]:
        """It has died too often."""
        text = (
            f"{child.name} has died {budget.max_restarts + 1} times within {budget.window_s:g} s "
            f"(--max_restarts, --restart_window_s), at last: {cause}"
        )
        if self._living.is_optional(child):
            return [(child, GivenUp(text))]
        self.failure = ChildError(text)
        return []


def _unsaved(child: Child, error: Exception) -> ChildError:
    """Why what a learner had is lost. error: of the parent, which has tried to save it, too."""
    if child.error and child.error.is_final:  # it has said what to do
        return ChildError(f"{child.name}: {child.error.message}", is_final=True)
    return ChildError(f"{child.name} could not save what it had: {child.cause_of_death()}; {error}")
