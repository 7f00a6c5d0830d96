"""The parent: allocates the shared memory, has the children supervised, and records what they report.

Consumes   reports of the children, signals.
Produces   metrics, the display, the summary.
Waits for  a report, the death of a child, a signal, or the time of the next record.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sf import checkpoint
from sf.config import Config
from sf.display import Display
from sf.events import EventHandler
from sf.learner.worker import LearnerArgs, learner
from sf.metrics import MetricsWriter
from sf.plan import Plan, make_plan
from sf.policy.worker import PolicyWorkerArgs, policy_worker
from sf.processes import Reports
from sf.progress import Progress
from sf.run_dir import RunDir
from sf.run_memory import RunMemory
from sf.stopping import Signals, caught_signals
from sf.supervisor import Supervisor


def train(config: Config) -> dict[str, Any]:
    """Train as configured, until the configured end or a signal; returns the summary that is also on disk.

    Raises ValueError for what the user can mend (before any process starts, where that can be known), and
    `supervisor.ChildError` where a process fails for good. `summary["stopped_by"]` is the number of the signal that
    ended the run, or None.
    """
    plan = make_plan(config)
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    with run_dir.locked():
        saved = checkpoint.latest(run_dir.checkpoints) if config.run.restart_behavior == "resume" else None
        if saved is not None:
            checkpoint.check_fits(saved, plan.weight_shapes)
            if checkpoint.env_steps(saved) >= config.run.target_env_steps(plan.spec.frameskip):
                raise ValueError(
                    f"the run {run_dir.path} has its {checkpoint.env_steps(saved)} env steps: raise "
                    "--train_for_env_steps to go on with it, name another --experiment, or begin anew with "
                    "--restart_behavior restart"
                )
        run_dir.prepare(config)
        return Run(plan, run_dir, checkpoint.env_steps(saved) if saved else 0).run()


class Run:
    """A run in its lifetime: start, watch, stop.

    resumed_steps: env steps of earlier parts of the run.
    policy_body, learner_body: what runs in those processes; benchmarks put simpler ones in their place.
    """

    def __init__(
        self,
        plan: Plan,
        run_dir: RunDir,
        resumed_steps: int = 0,
        policy_body: Callable[[Reports, PolicyWorkerArgs], None] = policy_worker,
        learner_body: Callable[[Reports, LearnerArgs], None] = learner,
    ) -> None:
        self._plan = plan
        self._run_dir = run_dir
        self._resumed_steps = resumed_steps
        memory = RunMemory.allocate(plan, run_dir.checkpoints)
        self._supervisor = Supervisor(memory, policy_body, learner_body)
        self._progress = Progress(memory.counters, memory.counter_rows, plan.spec.frameskip, plan.config.run.stats_avg)

    def run(self) -> dict[str, Any]:
        run = self._plan.config.run
        endless = run.train_for_env_steps >= 10**10 and run.train_for_env_frames is None
        frameskip = self._plan.spec.frameskip
        target_frames = None if endless else run.target_env_steps(frameskip) * frameskip
        target_seconds = run.train_for_seconds if run.train_for_seconds < 10**10 else None
        title = f"{run.env} in {self._run_dir.path}"
        with Display(title, target_frames, target_seconds) as display, caught_signals() as signals:
            writer = MetricsWriter(self._run_dir, display.say)
            events = EventHandler(self._progress, frameskip, display.say)
            try:
                self._supervisor.start(lambda: signals.first is not None, self._resumed_steps)
                self._watch(signals, events, writer, display)
            finally:
                for child, report in self._supervisor.stop(signals):
                    events.handle(child, report)
        summary = {**self._progress.summary(), "stopped_by": signals.first}
        writer.write_summary(summary)
        if self._supervisor.failure is not None:
            raise self._supervisor.failure
        return summary

    def _watch(self, signals: Signals, events: EventHandler, writer: MetricsWriter, display: Display) -> None:
        """Until the learner has finished, a signal arrives, time is up, or a child fails for good."""
        run = self._plan.config.run
        record_at = time.monotonic() + run.summaries_every_sec
        while not (self._supervisor.is_finished or self._supervisor.failure or signals.first):
            if self._progress.seconds > run.train_for_seconds:
                break
            timeout_s = min(record_at - time.monotonic(), run.train_for_seconds - self._progress.seconds)
            for child, report in self._supervisor.receive(signals.wakeup, max(0.0, timeout_s)):
                events.handle(child, report)
            signals.clear_wakeup()
            if time.monotonic() >= record_at:
                record_at = time.monotonic() + run.summaries_every_sec
                self._record(writer, display)
        self._record(writer, display)

    def _record(self, writer: MetricsWriter, display: Display) -> None:
        record = self._progress.record()
        if self._progress.has_begun:
            writer.write(record)
        display.show(record, self._progress.bottleneck(record))
