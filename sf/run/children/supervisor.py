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
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from sf import gpu
from sf.envs.errors import UsageError
from sf.processes import fork_servers
from sf.processes.child import Child
from sf.processes.main_module import UNGUARDED, UNGUARDED_MESSAGE
from sf.processes.stopping import Signals
from sf.queues import LockedQueueError
from sf.run.children.last_save import save_for_learner
from sf.run.children.restarts import RestartBudget
from sf.run.children.role import Role
from sf.run.children.starter import Starter
from sf.run.children.table import ROLES
from sf.run.children.watchdog import Watchdog
from sf.run.memory import RunMemory
from sf.storage import checkpoint_names

_STOP_WITHIN_S = 5.0
OPTIONAL_WITHIN_S = 60.0  # the evaluator: a video
_FINISH_WITHIN_S = 120.0  # the learner: an iteration, and the last checkpoint

Event = tuple[Child, dict[str, Any]]
"""A report of a child. Five kinds are the supervisor's own: `replaced` (text, lost_episodes: that were running),
`unreported` (lost_episodes: that had ended), `killed`,
`given_up` (text), `saved_for` (path, cause)."""


class ChildError(RuntimeError):
    """A child process failed for good; the text is what the child said. is_final: another start would not help."""

    def __init__(self, text: str, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class Supervisor:
    """failure: why the run cannot go on, if so."""

    def __init__(self, memory: RunMemory, roles: Sequence[Role] = ROLES) -> None:
        self.failure: Exception | None = None
        self.starter = Starter(memory)
        self._memory = memory
        self._roles = {role.name: role for role in roles}
        self._watchdog = Watchdog(memory, self._roles)
        self._finished: set[int] = set()  # policies whose learners have saved for the last time
        config = memory.plan.config.supervision
        self._budget = RestartBudget(config.max_restarts, config.restart_window_s)
        self._children: list[Child] = []
        self._is_stopping = False
        self._is_a_queue_locked = False
        self._is_cut_off = False  # from another rank
        self._is_optional_awaited: Callable[[], bool] = lambda: False
        self._reported: Counter[str] = Counter()  # episodes that have ended, by child
        self._learners: dict[int, Child] = {}  # by policy, the latest
        self._saving: set[int] = set()  # policies whose learners save for the last time
        self._diverged: set[int] = set()  # policies whose learners have ended the run over that
        self._check_every_s = min(1.0, config.worker_timeout_s / 5)

    @property
    def is_finished(self) -> bool:
        """Whether all learners have saved for the last time."""
        return len(self._finished) == self._memory.plan.num_policies

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
                        yield child, {"kind": "killed"}
                yield from self.receive(signals.wakeup, timeout_s=0.5)
                signals.clear_wakeup()
        finally:  # also where the caller fails over a report: the interpreter would wait for them at its end
            for child in list(self._children):
                self._kill(child)
        for policy_id, learner_child in self._learners.items():
            if policy_id not in self._finished | self._diverged:
                yield from self._save_for(learner_child)

    def _may_go_on(self, child: Child, asked_at: float, signals: Signals) -> bool:
        if self._is_optional(child):
            is_awaited = self._is_optional_awaited() and signals.first is None and self.failure is None
            return is_awaited and time.monotonic() - asked_at < OPTIONAL_WITHIN_S
        # Who has sent a signal waits for no iteration that is long, or hangs; nor is one waited for that may hang.
        is_free_to_save = signals.first is None and not (self._is_a_queue_locked or self._is_cut_off)
        is_awaited = self._roles[child.role].saves and (child.idx in self._saving or is_free_to_save)
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
        yield from ((child, {"kind": "say", "text": text}) for text in said)
        if saved is not None:
            yield child, {"kind": "saved_for", "path": str(saved), "env_steps": checkpoint_names.env_steps(saved)}

    # Watching

    def _start_all(self, roles: Sequence[Role], is_interrupted: Callable[[], bool] = lambda: False) -> None:
        for child in self.starter.all_of(roles, is_interrupted):
            self._add(child)

    def _add(self, child: Child) -> None:
        self._children.append(child)
        if self._roles[child.role].saves:
            self._learners[child.idx] = child

    def _is_optional(self, child: Child) -> bool:
        return self._roles[child.role].is_optional

    def _noted(self, child: Child, records: list[dict[str, Any]]) -> list[Event]:
        for record in records:
            self._note(child, record)
        return [(child, record) for record in records]

    def _note(self, child: Child, record: dict[str, Any]) -> None:
        if record["kind"] == "episodes":
            self._reported[child.name] += len(record["episodes"]) + record["lost_episodes"]
        elif record["kind"] == "ready":
            child.is_ready = True
        elif record["kind"] == "saving":
            self._saving.add(child.idx)
        elif record["kind"] == "finished":
            self._finished.add(child.idx)
        elif record["kind"] == "error":
            child.error = record

    def _bury(self, child: Child) -> list[Event]:
        """A child has ended. One that was not asked to has failed, whatever its exit code."""
        events = self._last_of(child)
        cause = child.cause_of_death()
        if self._is_stopping or self.is_finished or self.failure:
            return events
        return [*events, *self._fail_or_replace(child, cause)]

    def _fail_or_replace(self, child: Child, cause: str) -> list[Event]:
        if child.error and child.error["is_final"]:
            self.failure = ChildError(f"{child.name}: {child.error['message']}", is_final=True)
            if self._roles[child.role].saves and child.idx not in self._saving:
                self._diverged.add(child.idx)
            return []
        is_usage_error = bool(child.error and child.error["is_usage_error"])
        # A wrong setting shows while a child sets itself up, or in the first steps of an environment.
        is_setting_up = not child.is_ready or (is_usage_error and not self._roles[child.role].is_optional)
        if child.error and is_setting_up and self.starter.num_starts(child) == 1:
            text = child.error["message"] if is_usage_error else f"{child.name}: {cause}"
            self.failure = (UsageError if is_usage_error else ChildError)(text)
            return []
        if child.process.exitcode == UNGUARDED:
            self.failure = UsageError(UNGUARDED_MESSAGE)
            return []
        if self._ends_over_a_queue([child], cause) or self._ends_the_ranks(child, cause):
            return []
        if not self._budget.spend(child.name, time.monotonic()):
            return self._give_up(child, cause)
        return self._replace(child, cause)

    def _ends_over_a_queue(self, dead: Iterable[Child], cause: str) -> bool:
        for child in dead:
            if self._memory.queues.may_be_locked_by(child.process.pid):
                self._end_over_a_queue(f"{child.name} died inside of a queue, which may be locked for ever", cause)
        return self._is_a_queue_locked

    def cut_off(self, why: str) -> None:
        """Another rank has gone without a word. The learner may wait for it for ever."""
        self._is_cut_off = True
        self.failure = self.failure or ChildError(f"{why}: all ranks end, and torchrun may start them again")

    def _ends_the_ranks(self, child: Child, cause: str) -> bool:
        """The learners of several ranks begin together: torchrun starts them again, or the user does."""
        place = self._memory.plan.place
        takes_the_learner = self._roles[child.role].saves or (self._restarts_as_one and not self._is_optional(child))
        if place.is_alone or not takes_the_learner:
            return False
        self.failure = ChildError(f"{child.name} of rank {place.rank} has ended, and with it all ranks: {cause}")
        return True

    def _end_over_a_queue(self, what: str, cause: str) -> None:
        self._is_a_queue_locked = True
        self.failure = ChildError(
            f"{what} ({cause}). The run cannot go on: resume it, with --queues pipes where processes may be killed"
        )

    def _give_up(self, child: Child, cause: str) -> list[Event]:
        """It has died too often."""
        text = (
            f"{child.name} has died {self._budget.max_restarts + 1} times within {self._budget.window_s:g} s "
            f"(--max_restarts, --restart_window_s), at last: {cause}"
        )
        if self._is_optional(child):
            return [(child, {"kind": "given_up", "text": text})]
        self.failure = ChildError(text)
        return []

    # Replacing

    def _replace(self, child: Child, cause: str) -> list[Event]:
        memory = self._memory
        victims = self._to_replace_with(child)
        events = [event for victim in victims for event in self._kill(victim)]
        dead = [child, *victims]
        if self._ends_over_a_queue(victims, cause):
            return events
        try:
            self._recover_and_start(child, dead)
        except LockedQueueError as error:
            self._end_over_a_queue(str(error), cause)
            return events
        with_it = f", and with it {', '.join(victim.name for victim in victims)}" if victims else ""
        lost = sum(self._roles[one.role].episodes_at_once(memory.plan) for one in dead)
        return [*events, (child, {"kind": "replaced", "text": f"{cause}. Replaced{with_it}", "lost_episodes": lost})]

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
        return [(child, {"kind": "unreported", "lost_episodes": lost})] if lost else []


def _unsaved(child: Child, error: Exception) -> ChildError:
    """Why what a learner had is lost. error: of the parent, which has tried to save it, too."""
    if child.error and child.error["is_final"]:  # it has said what to do
        return ChildError(f"{child.name}: {child.error['message']}", is_final=True)
    return ChildError(f"{child.name} could not save what it had: {child.cause_of_death()}; {error}")
