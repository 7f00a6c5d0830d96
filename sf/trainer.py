"""The parent: allocates the shared memory, has the children supervised, and records what they report.

Consumes   reports of the children, signals.
Produces   metrics, the display, the summary.
Waits for  a report, the death of a child, a signal, or the time of the next record.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sf import checkpoint
from sf.config import Config
from sf.display import Display
from sf.display_panel import Target
from sf.evaluations import BestCheckpoints, Evaluations
from sf.events import EventHandler
from sf.learner.worker import learner
from sf.metrics import MetricsWriter, Sink
from sf.plan import Plan, make_plan
from sf.policy.worker import policy_worker
from sf.population.controller import Population
from sf.progress import Progress
from sf.run_dir import RunDir
from sf.run_memory import RunMemory
from sf.starter import LearnerBody, PolicyBody
from sf.stopping import Signals, caught_signals
from sf.supervisor import Supervisor
from sf.system_info import record_start
from sf.tensorboard_events import TensorBoard
from sf.wandb_sink import WandbSink, require_wandb


def train(config: Config) -> dict[str, Any]:
    """Train as configured, until the configured end or a signal; returns the summary that is also on disk.

    Raises ValueError for what the user can mend (before any process starts, where that can be known), and
    `supervisor.ChildError` where a process fails for good. `summary["stopped_by"]` is the number of the signal that
    ended the run, or None.
    """
    if config.watch.with_wandb:
        require_wandb()
    plan = make_plan(config)
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    with run_dir.locked():
        resumed_steps = [0] * plan.num_policies
        if config.run.restart_behavior == "resume":
            resumed_steps = _saved_env_steps(plan, run_dir)
        run_dir.prepare(config)
        record_start(run_dir)
        return Run(plan, run_dir, resumed_steps).run()


def _saved_env_steps(plan: Plan, run_dir: RunDir) -> list[int]:
    """Of each policy. Raises ValueError where what is saved cannot be gone on with."""
    saved_flags = run_dir.saved_flags() or {}
    num_policies = saved_flags.get("num_policies", 1)
    if saved_flags and num_policies != plan.num_policies:
        raise ValueError(
            f"num_policies is {plan.num_policies}, but the run {run_dir.path} has {num_policies}: leave it so, name "
            "another --experiment, or begin anew with --restart_behavior restart"
        )
    env_steps = []
    for policy_id in range(plan.num_policies):
        saved = checkpoint.latest(run_dir.checkpoints_of(policy_id, plan.num_policies))
        if saved is not None:
            checkpoint.check_fits(saved, plan.weight_shapes)
        env_steps.append(checkpoint.env_steps(saved) if saved else 0)
    if sum(env_steps) >= plan.target_env_steps:
        raise ValueError(
            f"the run {run_dir.path} has its {sum(env_steps)} env steps: raise --train_for_env_steps to go on with it, "
            "name another --experiment, or begin anew with --restart_behavior restart"
        )
    return env_steps


class Run:
    """A run in its lifetime: start, watch, stop.

    resumed_steps: env steps of earlier parts of the run, by policy.
    policy_body, learner_body: what runs in those processes; benchmarks put simpler ones in their place.
    """

    def __init__(
        self,
        plan: Plan,
        run_dir: RunDir,
        resumed_steps: Sequence[int] = (),
        policy_body: PolicyBody = policy_worker,
        learner_body: LearnerBody = learner,
    ) -> None:
        self._plan = plan
        self._run_dir = run_dir
        self._memory = RunMemory.allocate(plan, run_dir)
        self._is_resumed = any(resumed_steps)
        self._supervisor = Supervisor(self._memory, policy_body, learner_body)
        if resumed_steps:
            self._supervisor.starter.resumed_steps = resumed_steps
        self._progress = Progress(
            self._memory.counters,
            {role: rows for role, rows in self._memory.counter_rows.items() if role != "evaluator"},
            plan.spec.frameskip,
            plan.config.run.stats_avg,
            plan.num_policies,
            plan.config.population.pbt_target_objective,
            cores=plan.cores,
            num_epochs=plan.config.learner.num_epochs,
            is_on_gpu=plan.device != "cpu",
            is_synchronous=not plan.config.sampler.async_rl,
        )

    def run(self) -> dict[str, Any]:
        run = self._plan.config.run
        endless = run.train_for_env_steps >= 10**10 and run.train_for_env_frames is None
        frameskip = self._plan.spec.frameskip
        target_frames = None if endless else self._plan.target_env_steps * frameskip
        target_seconds = run.train_for_seconds if run.train_for_seconds < 10**10 else None
        title = f"{run.env} in {self._run_dir.path}"
        target = Target(target_frames, target_seconds)
        with Display(title, target) as display, caught_signals() as signals:
            if run.config and not self._is_resumed:
                display.say(f"starts from the preset {run.config} (another one: --config NAME)")
            writer = MetricsWriter(self._run_dir, display.say, self._sinks(display))
            population = self._make_population(display) if self._plan.config.population.with_pbt else None
            evaluations = Evaluations(
                self._plan.config.evaluation.eval_every_env_steps,
                self._memory.evaluations,
                self._progress,
                writer,
                display.say,
            )
            events = EventHandler(self._progress, frameskip, display.say, evaluations, population)
            try:
                self._supervisor.start(lambda: signals.first is not None)
                self._watch(signals, events, evaluations, population, writer, display)
            finally:
                for child, report in self._supervisor.stop(signals):
                    events.handle(child, report)
        summary = {**self._progress.summary(), "stopped_by": signals.first}
        writer.write_summary(summary)
        if self._supervisor.failure is not None:
            raise self._supervisor.failure
        return summary

    def _sinks(self, display: Display) -> list[Sink]:
        config = self._plan.config
        sinks: list[Sink] = [TensorBoard(self._run_dir, config.flat())]
        if config.watch.with_wandb:
            sinks.append(WandbSink(self._run_dir, config, display.say))
        return sinks

    def _make_population(self, display: Display) -> Population:
        population = Population(
            self._plan.config,
            self._plan.spec,
            self._run_dir,
            self._progress,
            self._memory.shaping,
            self._order,
            display.say,
        )
        self._supervisor.starter.hyperparameters = population.hyperparameters_of_learner
        return population

    def _order(self, policy_id: int, **order: Any) -> None:
        """Tell the learner of a policy, and whoever watches, what was decided."""
        self._progress.policies[policy_id].note_order(order["copies"])
        self._supervisor.starter.order(policy_id, **order)

    def _watch(
        self,
        signals: Signals,
        events: EventHandler,
        evaluations: Evaluations,
        population: Population | None,
        writer: MetricsWriter,
        display: Display,
    ) -> None:
        """Until all steps are done, a signal arrives, time is up, or a child fails for good."""
        run = self._plan.config.run
        record_at = time.monotonic() + run.summaries_every_sec
        is_evaluated = self._memory.evaluations is not None
        best = None if is_evaluated else BestCheckpoints(self._memory, self._progress, display.say)
        while not (self._supervisor.is_finished or self._supervisor.failure or signals.first):
            if self._progress.seconds > run.train_for_seconds or self._has_all_steps:
                break
            timeout_s = min(record_at - time.monotonic(), run.train_for_seconds - self._progress.seconds)
            for child, report in self._supervisor.receive(signals.wakeup, max(0.0, timeout_s)):
                events.handle(child, report)
            signals.clear_wakeup()
            if population is not None:
                population.evolve_if_due()
            evaluations.order_if_due()
            if time.monotonic() >= record_at:
                record_at = time.monotonic() + run.summaries_every_sec
                self._record(writer, display)
                if best is not None:
                    best.keep_if_due()
        self._record(writer, display)
        if best is not None:
            best.keep_if_due(now=True)

    @property
    def _has_all_steps(self) -> bool:
        """Of several policies. A single learner ends by itself, at the very step."""
        return self._plan.num_policies > 1 and self._progress.env_steps >= self._plan.target_env_steps

    def _record(self, writer: MetricsWriter, display: Display) -> None:
        record = self._progress.record()
        if self._progress.has_begun:
            writer.write(record)
        display.show(record, self._progress.outlook())
