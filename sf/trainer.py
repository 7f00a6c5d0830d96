"""The parent: allocates the shared memory, starts the processes, watches them, and ends them.

Consumes   reports of the children, signals.
Produces   metrics, the display, the summary; STOP in every queue at the end.
Waits for  a report, the death of a child, a signal, or the time of the next record.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any

from sf import processes
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

_STOP_WITHIN_S = 10.0
_KILL_AFTER_S = 2.0


class ChildError(RuntimeError):
    """A child process ended with an error; the text is what the child said."""


def train(config: Config) -> dict[str, Any]:
    """Train as configured, until the configured end or a signal; returns the summary that is also on disk.

    Raises ValueError for what the user can mend (before any process starts, where that can be known), and ChildError
    where a process fails. `summary["stopped_by"]` is the number of the signal that ended the run, or None.
    """
    plan = make_plan(config)
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
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
        self._children: list[Child] = []
        self._failure: str | None = None
        self._finished = False

    def run(self) -> dict[str, Any]:
        run = self._plan.config.run
        endless = run.train_for_env_steps >= 10**10
        target_frames = run.train_for_env_frames or (
            None if endless else run.train_for_env_steps * self._plan.spec.frameskip
        )
        target_seconds = run.train_for_seconds if run.train_for_seconds < 10**10 else None
        title = f"{run.env} in {self._run_dir.path}"
        writer = MetricsWriter(self._run_dir)
        with Display(title, target_frames, target_seconds) as display, _signals() as signals:
            try:
                self._start()
                self._watch(signals, writer, display)
            finally:
                self._stop(display)
                writer.close()
        summary = {**self._progress.summary(), "stopped_by": signals.received}
        self._run_dir.write_summary(summary)
        if self._failure is not None:
            raise ChildError(self._failure)
        return summary

    def _start(self) -> None:
        """Rollout workers first: simulators take longest to start."""
        plan, config = self._plan, self._plan.config
        roles = self._progress.roles
        # The fork server imports what every rollout worker needs, once: they start fast and share those pages.
        multiprocessing.set_forkserver_preload(["sf.rollout.worker"])
        for i in range(plan.num_workers):
            args = RolloutWorkerArgs(
                worker_idx=i,
                env=config.run.env,
                options=config.environment,
                num_envs_per_group=config.sampler.num_envs_per_group,
                rollout=config.sampler.rollout,
                seed=config.run.seed,
                core=plan.core_of(i),
                pool=self._pool,
                channels=self._channels,
                counters=self._counters.row(roles["rollout"][i]),
            )
            self._children.append(processes.start("forkserver", f"rollout-{i}", rollout_worker, args))
        pipes = [multiprocessing.Pipe(duplex=False) for _ in roles["policy"]]
        learner_args = LearnerArgs(
            config=config,
            spec=plan.spec,
            num_actors=plan.num_actors,
            bfloat16=plan.bfloat16,
            num_threads=plan.learner_threads,
            memory=self._memory,
            policy_workers=tuple(learner_end for _, learner_end in pipes),
            pool=self._pool,
            counters=self._counters.row(roles["learner"][0]),
            checkpoints=self._run_dir.checkpoints.absolute(),
        )
        self._children.append(processes.start("spawn", "learner-0", self._learner_body, learner_args))
        for i, (policy_end, _) in enumerate(pipes):
            policy_args = PolicyWorkerArgs(
                spec=plan.spec,
                model=config.model,
                bfloat16=plan.bfloat16,
                synchronous=not config.sampler.async_rl,
                num_threads=plan.policy_threads,
                seed=config.run.seed + i,
                rollout=config.sampler.rollout,
                memory=self._memory,
                learner=policy_end,
                pool=self._pool,
                channels=self._channels,
                counters=self._counters.row(roles["policy"][i]),
            )
            self._children.append(processes.start("spawn", f"policy-{i}", self._policy_body, policy_args))
        for pipe in pipes:  # the children hold them now; the end of one must be seen by the other
            pipe[0].close()
            pipe[1].close()

    def _watch(self, signals: _Signals, writer: MetricsWriter, display: Display) -> None:
        """Until the learner has finished, a signal arrives, time is up, or a child fails."""
        run = self._plan.config.run
        record_at = time.monotonic() + run.summaries_every_sec
        while not (self._finished or self._failure or signals.received):
            if self._progress.seconds > run.train_for_seconds:
                return
            timeout = min(record_at - time.monotonic(), run.train_for_seconds - self._progress.seconds)
            self._receive(display, max(0.0, timeout), signals.wakeup_fd)
            if time.monotonic() >= record_at:
                record_at += run.summaries_every_sec
                record = self._progress.record()
                writer.write(record)
                display.show(record, self._progress.bottleneck(record))
        if self._progress.env_steps > 0:
            writer.write(self._progress.record())

    def _receive(self, display: Display, timeout: float, *also: int) -> None:
        """Wait for reports, deaths, or `also`; handle what has come."""
        alive = [child for child in self._children if not child.connection.closed]
        waitables = [child.connection for child in alive] + list(also)
        ready = connection.wait(waitables, timeout)  # a dead child's pipe is ready, too
        for child in alive:
            if child.connection in ready:
                self._handle(child, child.receive(), display)

    def _handle(self, child: Child, records: list[dict[str, Any]], display: Display) -> None:
        for record in records:
            kind = record.pop("kind")
            if kind == "episodes":
                self._progress.add_episodes(record["episodes"])
            elif kind == "train":
                self._progress.add_training(record.pop("env_steps"), record)
            elif kind == "checkpoint":
                display.say(f"{child.name}: saved {record['path']}")
            elif kind == "ready" and child.name.startswith("learner"):
                self._progress.env_steps = record["env_steps"]
                self._progress.seconds_before = record["seconds"]
            elif kind == "finished":
                self._progress.env_steps = record["env_steps"]
                self._finished = True
            elif kind == "error":
                self._failure = f"{child.name} failed: {record['message']}\n\n{record['traceback']}"
        if not records:  # the end of the pipe: the child is gone
            child.connection.close()
            child.process.join()
            if child.process.exitcode != 0 and self._failure is None:
                self._failure = f"{child.name} died: exit code {child.process.exitcode}"

    def _stop(self, display: Display) -> None:
        """Ask every process to end, wait for it, and kill what does not."""
        self._pool.full.put(STOP)
        self._pool.free.put(STOP)
        self._channels.requests.put(STOP)
        for inbox in self._channels.inboxes:
            inbox.put(STOP)
        deadline = time.monotonic() + _STOP_WITHIN_S
        while time.monotonic() < deadline and any(not child.connection.closed for child in self._children):
            self._receive(display, deadline - time.monotonic())
        for child in self._children:
            if child.process.is_alive():
                display.say(f"{child.name}: did not stop within {_STOP_WITHIN_S:.0f} s, killed")
                child.process.kill()
            child.process.join(_KILL_AFTER_S)


class _Signals:
    """SIGINT and SIGTERM as something to wait for."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._reader, self._writer = connection.Pipe(duplex=False)
        self.wakeup_fd = self._reader.fileno()

    def handle(self, signum: int, _frame: object) -> None:
        if self.received is None:
            self.received = signum
            self._writer.send_bytes(b"")


@contextmanager
def _signals() -> Iterator[_Signals]:
    signals = _Signals()
    before = {s: signal.signal(s, signals.handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
