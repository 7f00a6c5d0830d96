"""The learner: trains on whole trajectories and publishes weights. The only process that changes them.

Consumes   filled slots.
Produces   free slots, published weights, training metrics and checkpoints.
Waits for  a batch of filled slots.
Unblocked  by rollout workers, or by STOP among the filled slots.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from envs import ActionSpec, EnvSpec
from sf import checkpoint
from sf.config import Config
from sf.counters import CounterRow
from sf.learner.batch import AsyncLoader, Batch, SlotCopier, SyncLoader
from sf.learner.update import Updater
from sf.policy_memory import PolicyMemory, PolicyMemorySpec
from sf.processes import Reports
from sf.slots import SlotPool
from sf.stopping import StopFlag
from sf.torch_runtime import configure

_REPORT_EVERY_S = 1.0


@dataclass(frozen=True)
class LearnerArgs:
    """Everything the learner needs to know."""

    config: Config
    spec: EnvSpec
    num_actors: int
    bfloat16: bool
    num_threads: int
    memory: PolicyMemorySpec
    policy_workers: tuple[Connection, ...]  # where the memory is shared to
    pool: SlotPool
    counters: CounterRow
    checkpoints: Path
    started_at: float  # time.time() of the start of the run
    stop: StopFlag


def learner(reports: Reports, args: LearnerArgs) -> None:
    """Body of the process. Ends by itself when the run has as many env steps as it shall have."""
    configure(args.num_threads, deterministic=not args.config.sampler.async_rl)
    torch.manual_seed(args.config.run.seed)
    state = _LearnerState(args)
    memory = PolicyMemory.create(args.memory)
    state.publish(memory)
    memory.share(args.policy_workers)
    loader = _make_loader(args, memory)
    reports.send("ready", env_steps=state.env_steps, seconds_before=state.seconds_before)

    counters = args.counters
    reported_at = time.perf_counter()
    while not (state.is_finished or args.stop.is_set()):
        waiting_since = time.perf_counter()
        batch = loader.next()
        busy_since = time.perf_counter()
        if batch is None:
            break
        steps = state.updater.train_iteration(batch, state.env_steps, lambda: state.publish(memory))
        loader.release(batch)
        state.env_steps += batch.num_samples
        now = time.perf_counter()
        counters.add(steps=batch.num_samples, calls=steps, wait_s=busy_since - waiting_since, busy_s=now - busy_since)
        if now - reported_at > _REPORT_EVERY_S or state.is_finished:
            reported_at = now
            reports.send("train", env_steps=state.env_steps, **state.updater.pop_metrics())
        if state.is_save_due:
            reports.send("checkpoint", path=str(state.save()))
    reports.send("checkpoint", path=str(state.save()))
    reports.send("finished", env_steps=state.env_steps)
    if args.memory.device != "cpu":
        _wait_for_the_readers(args.policy_workers)


class _LearnerState:
    """What a checkpoint holds, and when the next one is due."""

    def __init__(self, args: LearnerArgs) -> None:
        self._args = args
        device = torch.device(args.memory.device)
        action_spec = ActionSpec.of(args.spec.action_space)
        self.updater = Updater(args.config, args.spec.obs_space, action_spec, args.bfloat16, device)
        self.env_steps = 0
        self.seconds_before = 0.0
        self._saved_at = time.monotonic()
        self._target = args.config.run.target_env_steps(args.spec.frameskip)
        path = checkpoint.latest(args.checkpoints)
        if path is not None:
            self._load(checkpoint.load(path))

    @property
    def is_finished(self) -> bool:
        return self.env_steps >= self._target

    @property
    def seconds(self) -> float:
        """Wall time of the whole run, earlier parts of a resumed one included."""
        return self.seconds_before + time.time() - self._args.started_at

    @property
    def is_save_due(self) -> bool:
        return time.monotonic() - self._saved_at > self._args.config.run.save_every_sec

    def publish(self, memory: PolicyMemory) -> None:
        memory.publish(self.updater.flat_weights(), self.updater.version)

    def save(self) -> Path:
        self._saved_at = time.monotonic()
        state: dict[str, Any] = {
            "env_steps": self.env_steps,
            "seconds": self.seconds,
            "updater": self.updater.state(),
            "config": self._args.config.flat(),
        }
        return checkpoint.save(
            self._args.checkpoints,
            checkpoint.Checkpoint(self.updater.tensors(), state),
            self.env_steps,
            keep=self._args.config.run.keep_checkpoints,
        )

    def _load(self, saved: checkpoint.Checkpoint) -> None:
        self.env_steps = saved.state["env_steps"]
        self.seconds_before = saved.state["seconds"]
        self.updater.load(saved.tensors, saved.state["updater"])


def _wait_for_the_readers(policy_workers: tuple[Connection, ...]) -> None:
    """GPU memory goes with the process that allocated it: stay until no policy worker uses it any more."""
    for connection in policy_workers:
        with suppress(EOFError, OSError):
            connection.recv()  # nothing is ever sent this way: it is the end of the pipe that is waited for


def _make_loader(args: LearnerArgs, memory: PolicyMemory) -> AsyncLoader | SyncLoader:
    device = torch.device(args.memory.device)
    copier = SlotCopier(args.pool, memory, device)

    def batch() -> Batch:
        return Batch.empty(args.pool, args.config.slots_per_iteration, memory.slot_state.shape[1], device)

    if args.config.sampler.async_rl:
        return AsyncLoader(args.pool, copier, (batch(), batch()))
    return SyncLoader(args.pool, copier, batch(), args.num_actors)
