"""The parent: allocates the shared memory, has the children supervised, and records what they report.

Consumes   reports of the children, signals.
Produces   metrics, the display, the summary.
Waits for  a report, the death of a child, a signal, or the time of the next record.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sf.evaluation.during_training import Evaluations, Videos
from sf.metrics.advice import StaleData
from sf.metrics.display.console import OutputConsole
from sf.metrics.display.live import Display
from sf.metrics.display.panel import Target
from sf.metrics.meter import Machine
from sf.metrics.progress import Progress
from sf.metrics.sinks.tensorboard import TensorBoard
from sf.metrics.sinks.trackers import tracker_sinks
from sf.metrics.sinks.writer import MetricsWriter, Sink
from sf.metrics.system_info import read_starts
from sf.ranks.board import Board
from sf.run.children.roles.role import Body
from sf.run.children.roles.table import counts, roles_with
from sf.run.children.supervisor import OPTIONAL_WITHIN_S, Supervisor
from sf.run.controllers import Controllers
from sf.run.joining import ANOTHER_RANK
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.run.parent_saves import BestCheckpoints
from sf.run.plan import Plan
from sf.run.ranks_report import RanksReport
from sf.run.record_hooks import OnRecord, RecordHooks, stop_at_return
from sf.run.reports import ReportHandler
from sf.run.serial import SerialSupervisor
from sf.run.startup.levels import begin_levels
from sf.run.startup.schedules import begin_schedules
from sf.run.startup.startup_messages import startup_messages
from sf.storage.run_dir import FAILURE, RunDir
from sf.storage.run_lock import HeldError
from sf.storage.run_log import RunLog
from sf.system.messages import said_to, say
from sf.system.processes.stopping import Signals, caught_signals

_FIRST_RECORD_AFTER_S = 1.0  # the start of many environments takes minutes


class Run:
    """A run in its lifetime: start, watch, stop.

    resumed_steps: env steps of earlier parts of the run, by policy. on_record: see `sf.api.train`. on_under_way: is
    called once all processes are ready, or the run has ended with something trained; it may be called again.
    bodies: by role, what runs in those processes instead; benchmarks put simpler ones there.
    """

    def __init__(
        self,
        plan: Plan,
        run_dir: RunDir,
        resumed_steps: Sequence[int] = (),
        on_record: OnRecord | None = None,
        bodies: Mapping[str, Body] = MappingProxyType({}),
        on_under_way: Callable[[], None] = lambda: None,
        board: Board | None = None,
        renew_lock: Callable[[], None] = lambda: None,
    ) -> None:
        """board: of the ranks that this trainer is one of. renew_lock: raises HeldError where another run has the
        directory by now; then nothing more is written there."""
        self._renew_lock = renew_lock
        self._on_under_way = on_under_way
        self._has_been_under_way = False
        self._plan = plan
        self._run_dir = run_dir
        roles = roles_with(bodies)
        self._memory = RunMemory.allocate(plan, run_dir, counts(plan))
        hangs_after_s = plan.config.supervision.worker_timeout_s
        self._ranks = RanksReport(plan.place, board or Board(), hangs_after_s, self._memory.shaping)
        self._resumed_steps = sum(resumed_steps)
        self._progress = Progress(
            self._memory.counters,
            {
                role.name: rows
                for role in roles
                if (rows := self._memory.counter_rows[role.name]) and not role.is_optional
            },
            plan.spec.frameskip,
            plan.config.run.stats_avg,
            plan.num_policies,
            plan.num_actors,
            plan.config.population.pbt_target_objective,
            machine=Machine(plan.cores, plan.num_cores),
            num_epochs=plan.config.learner.num_epochs,
            settings={
                "num_workers": plan.num_workers,
                "num_envs_per_worker": plan.config.sampler.num_envs_per_worker,
                "policy_workers_per_policy": plan.config.sampler.policy_workers_per_policy,
                "batch_size": plan.config.slots_per_batch * plan.config.rollout,
            },
            num_envs=plan.num_groups * plan.config.sampler.num_envs_per_group,
            num_steps_before_update=plan.num_steps_before_update,
            is_on_gpu=plan.device != "cpu",
            is_synchronous=not plan.config.sampler.async_rl,
            num_ranks=plan.place.size,
            start=max(1, len(read_starts(run_dir))),
        )
        self._learner_orders = LearnerOrders(self._progress)
        self._supervisor: Supervisor | SerialSupervisor
        if plan.config.run.serial:
            self._supervisor = SerialSupervisor(self._memory, self._learner_orders)
        else:
            self._supervisor = Supervisor(self._memory, self._learner_orders, roles)
        if resumed_steps:
            self._supervisor.resume(resumed_steps)
        if self._memory.scheduled is not None:
            begin_schedules(self._memory, self._memory.scheduled)
        if self._memory.levels is not None:
            begin_levels(self._memory, self._memory.levels)
        hooks: dict[str, OnRecord] = {} if on_record is None else {"on_record": on_record}
        if (threshold := plan.config.run.stop_at_return) is not None:
            hooks["stop_at_return"] = stop_at_return(
                threshold, plan.config.run.stats_avg, plan.num_policies, lambda: self._progress.are_judged
            )
        self._hooks = RecordHooks(hooks)

    def run(self) -> dict[str, Any]:
        run = self._plan.config.run
        frameskip = self._plan.spec.frameskip
        target = Target(
            frames=self._plan.target_env_steps * frameskip if run.ends_by_steps else None,
            seconds=run.most_seconds if run.ends_by_seconds else None,
        )
        title = f"{run.env} in {self._run_dir.path}"
        log = RunLog(self._run_dir.log)
        # A panel would hide what a debugger asks.
        console = OutputConsole(force_interactive=False) if run.serial else None
        with (
            Display(title, target, console, log=log.write) as display,
            said_to(display.say),
            caught_signals(second_interrupts=run.serial) as signals,  # where code of the user may hang in this process
        ):
            for sentence in startup_messages(self._plan, self._run_dir.path, self._resumed_steps):
                say(sentence)
            sinks: list[Sink] = [TensorBoard(self._run_dir, self._plan.config.flat())]
            if self._plan.place.is_first:
                sinks += tracker_sinks(self._run_dir, self._plan.config)
            writer = MetricsWriter(self._run_dir, sinks)
            controllers = Controllers(self._memory, self._learner_orders, self._resumed_steps, self._progress)
            orders = controllers.orders
            videos = Videos(orders, self._memory.videos, frameskip, writer)
            evaluations = Evaluations(orders, self._progress, writer)
            events = ReportHandler(
                self._progress,
                frameskip,
                orders,
                evaluations,
                videos,
                controllers.population,
                controllers.matchmaker,
                controllers.task_choice,
                stale_data=lambda: StaleData(self._plan.config, self._plan.has_auto_sizes),
                ranks=self._ranks,
            )
            asked_by = None
            self._run_dir.remove_summary()  # not before: a start that is refused leaves it
            try:
                self._supervisor.start(lambda: signals.first is not None)
                asked_by = self._watch(signals, events, controllers, writer, display)
            except HeldError:
                self._supervisor.kill_unsaved()
                raise
            finally:
                self._ranks.note_failure(self._supervisor.failure)
                if orders.is_filming and signals.first is None and self._supervisor.failure is None:
                    say(f"the last video is finished, within {OPTIONAL_WITHIN_S:.0f} s; Ctrl-C ends the run now")
                for child, report in self._supervisor.stop(signals, lambda: orders.is_filming):
                    events.handle(child, report)
                if self._ranks.has_signalled_rank and signals.first is None:
                    self._ranks.wait_for_own_signal(signals)
                controllers.end()
                videos.remove_unfinished()
                if self._progress.env_steps > 0:
                    self._on_under_way()
                self._memory.pinned.release()
        summary = {
            **self._ranks.summary_of_all(self._progress.summary(), self._supervisor.failure is not None),
            "stopped_by": self._stopped_by(signals, asked_by),
        }
        with said_to(display.say):
            writer.write_summary(summary)
        if self._supervisor.failure is not None:
            raise self._supervisor.failure from self._hooks.error
        if self._hooks.error is not None:
            raise self._hooks.error
        without_episode = self._progress.without_episode(self._plan.spec.time_limit)
        if without_episode is not None:
            display.say(without_episode)
        return summary

    def _watch(
        self,
        signals: Signals,
        events: ReportHandler,
        controllers: Controllers,
        writer: MetricsWriter,
        display: Display,
    ) -> str | None:
        """Watch until the run ends, whatever the reason. Returns the name of the hook that asked, if one has."""
        run = self._plan.config.run
        record_at = time.monotonic() + min(_FIRST_RECORD_AFTER_S, run.summaries_every_sec)
        best: BestCheckpoints | None = None
        while not (self._supervisor.is_finished or self._supervisor.failure or signals.first):
            if self._hooks.stopped_by or self._progress.seconds > run.most_seconds or self._has_all_steps:
                break
            timeout_s = min(record_at - time.monotonic(), run.most_seconds - self._progress.seconds)
            for child, report in self._supervisor.receive(signals.wakeup, max(0.0, timeout_s)):
                events.handle(child, report)
            signals.clear_wakeup()
            if self._supervisor.is_under_way:
                self._has_been_under_way = True
                self._on_under_way()
            controllers.act_if_due()
            self._supervisor.end_if(controllers.why_over)
            lost = self._ranks.why_lost(self._learners())
            if lost is not None:
                self._supervisor.cut_off(lost)
            if time.monotonic() >= record_at:
                record_at = time.monotonic() + run.summaries_every_sec
                self._record(writer, display, controllers)
                if best is not None:
                    best.keep_if_due()
            if best is None and self._plan.place.saves and not controllers.orders.has_evaluations:
                best = BestCheckpoints(self._memory, self._progress)
        asked_by = self._hooks.stopped_by
        if asked_by is None:
            self._record(writer, display, controllers)
        else:
            say(self._hooks.last_words())
        if signals.first is not None:
            saves = self._has_been_under_way or self._progress.env_steps > 0
            say(f"{signal.Signals(signals.first).name}: the run {'saves and ends' if saves else 'ends'}")
        if best is not None:
            best.keep_if_due(now=True)
        return asked_by

    def _stopped_by(self, signals: Signals, asked_by: str | None) -> str | None:
        """asked_by: the name of the hook that asked for the end. None: the run has come to its end."""
        if signals.first is not None:
            return signal.Signals(signals.first).name
        if self._ranks.has_signalled_rank:
            return ANOTHER_RANK
        return FAILURE if self._supervisor.failure is not None else asked_by

    def _learners(self) -> list[tuple[bool, float]]:
        """Returns for each policy whether other ranks hold its learner up, and its heartbeat."""
        rows = (self._memory.counter_row("learner", policy_id) for policy_id in range(self._plan.num_policies))
        return [(bool(row.get("is_held_up")), row.get("heartbeat")) for row in rows]

    @property
    def _has_all_steps(self) -> bool:
        """Whether several policies have all their steps. A single learner ends by itself, at the very step."""
        return self._plan.num_policies > 1 and self._progress.env_steps >= self._plan.target_env_steps

    def _record(self, writer: MetricsWriter, display: Display, controllers: Controllers) -> None:
        if self._has_been_under_way:  # before, an end would put back what was in the directory
            self._renew_lock()
        controllers.before_record()
        slow_start = self._progress.slow_start(self._plan.config.sampler.num_envs_per_worker)
        if slow_start is not None:
            say(slow_start)
        record, outlook = self._progress.record(), self._progress.outlook()
        self._ranks.tell(record, outlook)
        record, outlook = self._ranks.of_all(record), self._ranks.outlook_of_all(outlook)
        if self._progress.has_begun:
            writer.write(record)
        display.show(record, outlook)
        if self._progress.has_begun:
            self._hooks.call(record)
