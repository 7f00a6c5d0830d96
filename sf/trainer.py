"""The parent: allocates the shared memory, starts the processes, watches them, and ends them.

Consumes   reports of the children, signals.
Produces   metrics, the display, the summary; STOP in every queue at the end.
Waits for  a report, the death of a child, a signal, or the time of the next record.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from sf import checkpoint, processes
from sf.channels import Channels
from sf.config import Config
from sf.counters import Counters
from sf.display import Display
from sf.learner.worker import LearnerArgs, learner
from sf.metrics import MetricsWriter
from sf.plan import Plan, make_plan
from sf.policy.worker import PolicyWorkerArgs, policy_worker
from sf.policy_memory import PolicyMemorySpec
from sf.processes import Child, Reports
from sf.progress import Progress
from sf.queues import STOP
from sf.rollout.worker import RolloutWorkerArgs, rollout_worker
from sf.run_dir import RunDir
from sf.slots import SlotPool
from sf.stopping import Signals, StopFlag, caught_signals

_STOP_WITHIN_S = 10.0
_SAVE_WITHIN_S = 120.0  # the learner: the rest of an iteration, and the last checkpoint


class ChildError(RuntimeError):
    """A child process ended with an error; the text is what the child said."""


def train(config: Config) -> dict[str, Any]:
    """Train as configured, until the configured end or a signal; returns the summary that is also on disk.

    Raises ValueError for what the user can mend (before any process starts, where that can be known), and ChildError
    where a process fails. `summary["stopped_by"]` is the number of the signal that ended the run, or None.
    """
    plan = make_plan(config)
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    saved = checkpoint.latest(run_dir.checkpoints)
    if saved is not None and config.run.restart_behavior == "resume":
        checkpoint.check_fits(saved, plan.weight_shapes)
        if checkpoint.env_steps(saved) >= config.run.target_env_steps(plan.spec.frameskip):
            raise ValueError(
                f"the run {run_dir.path} has its {checkpoint.env_steps(saved)} env steps: raise --train_for_env_steps "
                "to go on with it, name another --experiment, or begin anew with --restart_behavior restart"
            )
    run_dir.prepare(config)
    return Run(plan, run_dir).run()


class Run:
    """A run in its lifetime: start, watch, stop.

    policy_body, learner_body: what runs in those processes; benchmarks put simpler ones in their place.
    """

    def __init__(
        self,
        plan: Plan,
        run_dir: RunDir,
        policy_body: Callable[[Reports, PolicyWorkerArgs], None] = policy_worker,
        learner_body: Callable[[Reports, LearnerArgs], None] = learner,
    ) -> None:
        config = plan.config
        self._policy_body = policy_body
        self._learner_body = learner_body
        self._plan = plan
        self._run_dir = run_dir
        num_policy_workers = config.sampler.policy_workers_per_policy
        self._pool = SlotPool.allocate(plan.spec, plan.num_slots, config.sampler.rollout)
        self._channels = Channels.allocate(plan.num_workers, config.sampler.worker_num_splits, plan.actors_per_group)
        self._memory = PolicyMemorySpec.allocate(
            plan.device, plan.num_weights, plan.state_size, plan.num_actors, plan.num_slots
        )
        rows = iter(range(plan.num_workers + num_policy_workers + 1))
        roles = {
            "rollout": [next(rows) for _ in range(plan.num_workers)],
            "policy": [next(rows) for _ in range(num_policy_workers)],
            "learner": [next(rows)],
        }
        self._counters = Counters.allocate(plan.num_workers + num_policy_workers + 1)
        self._progress = Progress(self._counters, roles, plan.spec.frameskip, config.run.stats_avg)
        self._stop_flag = StopFlag()
        self._children: list[Child] = []
        self._failure: Exception | None = None
        self._finished = False
        self._stopping = False
        self._started_at = time.time()

    def run(self) -> dict[str, Any]:
        run = self._plan.config.run
        endless = run.train_for_env_steps >= 10**10 and run.train_for_env_frames is None
        frameskip = self._plan.spec.frameskip
        target_frames = None if endless else run.target_env_steps(frameskip) * frameskip
        target_seconds = run.train_for_seconds if run.train_for_seconds < 10**10 else None
        title = f"{run.env} in {self._run_dir.path}"
        writer = MetricsWriter(self._run_dir)
        with Display(title, target_frames, target_seconds) as display, caught_signals() as signals:
            try:
                self._start(signals)
                self._watch(signals, writer, display)
            finally:
                self._stop(signals, display)
                writer.close()
        summary = {**self._progress.summary(), "stopped_by": signals.first}
        self._run_dir.write_summary(summary)
        if self._failure is not None:
            raise self._failure
        return summary

    def _start(self, signals: Signals) -> None:
        """Rollout workers first: simulators take longest to start."""
        processes.start_fork_server(["sf.rollout.worker"])
        for i in range(self._plan.num_workers):
            if signals.first is not None:
                return
            self._children.append(
                processes.start("forkserver", f"rollout-{i}", rollout_worker, self._rollout_worker_args(i))
            )
        num_policy_workers = self._plan.config.sampler.policy_workers_per_policy
        pipes = [multiprocessing.Pipe() for _ in range(num_policy_workers)]
        learner_args = self._learner_args(tuple(learner_end for learner_end, _ in pipes))
        self._children.append(processes.start("spawn", "learner-0", self._learner_body, learner_args))
        for i, (_, policy_end) in enumerate(pipes):
            policy_args = self._policy_worker_args(i, policy_end)
            self._children.append(processes.start("spawn", f"policy-{i}", self._policy_body, policy_args))
        for pipe in pipes:  # the children hold them now; the end of one must be seen by the other
            pipe[0].close()
            pipe[1].close()

    def _rollout_worker_args(self, idx: int) -> RolloutWorkerArgs:
        plan, config = self._plan, self._plan.config
        return RolloutWorkerArgs(
            worker_idx=idx,
            env=config.run.env,
            options=config.environment,
            num_envs_per_group=config.sampler.num_envs_per_group,
            rollout=config.sampler.rollout,
            seed=config.run.seed,
            core=plan.core_of(idx),
            pool=self._pool,
            channels=self._channels,
            counters=self._counters.row(self._progress.roles["rollout"][idx]),
        )

    def _policy_worker_args(self, idx: int, to_learner: Connection) -> PolicyWorkerArgs:
        plan, config = self._plan, self._plan.config
        return PolicyWorkerArgs(
            spec=plan.spec,
            model=config.model,
            bfloat16=plan.bfloat16,
            synchronous=not config.sampler.async_rl,
            num_threads=plan.policy_threads,
            seed=config.run.seed + idx,
            rollout=config.sampler.rollout,
            memory=self._memory,
            learner=to_learner,
            pool=self._pool,
            channels=self._channels,
            counters=self._counters.row(self._progress.roles["policy"][idx]),
        )

    def _learner_args(self, to_policy_workers: tuple[Connection, ...]) -> LearnerArgs:
        plan = self._plan
        return LearnerArgs(
            config=plan.config,
            spec=plan.spec,
            num_actors=plan.num_actors,
            bfloat16=plan.bfloat16,
            num_threads=plan.learner_threads,
            memory=self._memory,
            policy_workers=to_policy_workers,
            pool=self._pool,
            counters=self._counters.row(self._progress.roles["learner"][0]),
            checkpoints=self._run_dir.checkpoints.absolute(),
            started_at=self._started_at,
            stop=self._stop_flag,
        )

    def _watch(self, signals: Signals, writer: MetricsWriter, display: Display) -> None:
        """Until the learner has finished, a signal arrives, time is up, or a child fails."""
        run = self._plan.config.run
        record_at = time.monotonic() + run.summaries_every_sec
        while not (self._finished or self._failure or signals.first):
            if self._progress.seconds > run.train_for_seconds:
                break
            timeout = min(record_at - time.monotonic(), run.train_for_seconds - self._progress.seconds)
            self._receive(signals, display, max(0.0, timeout))
            if time.monotonic() >= record_at:
                record_at = time.monotonic() + run.summaries_every_sec
                self._record(writer, display)
        self._record(writer, display)

    def _record(self, writer: MetricsWriter, display: Display) -> None:
        record = self._progress.record()
        if self._progress.has_begun:
            writer.write(record)
        display.show(record, self._progress.bottleneck(record))

    def _receive(self, signals: Signals, display: Display, timeout: float) -> None:
        """Wait for reports, deaths or a signal, and handle what has come."""
        living = [child for child in self._children if not child.is_gone]
        open_pipes = [child.connection for child in living if not child.connection.closed]
        sentinels = [child.process.sentinel for child in living]
        ready = connection.wait([*open_pipes, *sentinels, signals.wakeup], timeout)
        signals.clear_wakeup()
        for child in living:
            if child.connection in ready:
                for record in child.receive():
                    self._handle(child, record, display)
            if child.process.sentinel in ready:
                self._bury(child)

    def _handle(self, child: Child, record: dict[str, Any], display: Display) -> None:
        kind = record.pop("kind")
        if kind == "episodes":
            self._progress.add_episodes(record["episodes"])
        elif kind == "train":
            self._progress.add_training(record.pop("env_steps"), record)
        elif kind == "checkpoint":
            display.say(f"{child.name}: saved {record['path']}")
        elif kind == "ready":
            child.is_ready = True
            if child.name.startswith("learner"):
                self._progress.resume(record["env_steps"], record["seconds_before"])
        elif kind == "finished":
            self._progress.env_steps = record["env_steps"]
            self._finished = True
        elif kind == "error":
            self._failure = self._failure or _failure(child, record)

    def _bury(self, child: Child) -> None:
        """A child has ended; one that was not asked to has failed, whatever its exit code."""
        child.process.join()
        child.connection.close()
        child.is_gone = True
        if not (self._stopping or self._finished or self._failure):
            self._failure = ChildError(f"{child.name} died: exit code {child.process.exitcode}")

    def _stop(self, signals: Signals, display: Display) -> None:
        """Ask every process to end, wait for it, and kill what does not. A second signal cuts the wait short."""
        self._stopping = True
        # In a thread: a process that was killed inside a queue may have left it locked for ever.
        threading.Thread(target=self._send_stops, daemon=True).start()
        asked_at = time.monotonic()
        while any(self._may_go_on(child, asked_at, signals) for child in self._children):
            self._receive(signals, display, timeout=0.5)
        for child in self._children:
            if not child.is_gone:
                display.say(f"{child.name}: did not stop when it was asked to, killed")
                child.process.kill()
                child.process.join()

    def _may_go_on(self, child: Child, asked_at: float, signals: Signals) -> bool:
        patience_s = _SAVE_WITHIN_S if child.name.startswith("learner") else _STOP_WITHIN_S
        return not (child.is_gone or signals.is_urgent or time.monotonic() - asked_at > patience_s)

    def _send_stops(self) -> None:
        self._stop_flag.set()
        self._pool.full.put(STOP)
        self._pool.free.put(STOP)
        self._channels.requests.put(STOP)
        for inbox in self._channels.inboxes:
            inbox.put(STOP)


def _failure(child: Child, record: dict[str, Any]) -> Exception:
    """A wrong setting shows while a child sets itself up, and takes one sentence; the rest are faults."""
    if record["is_value_error"] and not child.is_ready:
        return ValueError(record["message"])
    return ChildError(f"{child.name} failed: {record['message']}\n\n{record['traceback']}")
