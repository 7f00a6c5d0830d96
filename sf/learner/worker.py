"""The learner: trains on whole trajectories and publishes weights. The only process that changes them.

Consumes   filled slots.
Produces   free slots, published weights, training metrics, checkpoints, and its state for a successor.
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
from sf.checkpoint import Checkpoint
from sf.config import Config
from sf.counters import CounterRow
from sf.learner.batch import AsyncLoader, Batch, SlotCopier, SyncLoader
from sf.learner.divergence import RollbackBudget
from sf.learner.update import Updater
from sf.policy_memory import PolicyMemory, PolicyMemorySpec, Readers
from sf.processes import Reports
from sf.recovery import RecoveryMemory
from sf.slots import LearnerSlots
from sf.stopping import StopFlag
from sf.torch_runtime import configure

_REPORT_EVERY_S = 1.0
_REMEMBER_EVERY_S = 5.0  # what a successor loses at most
_RETRY_SAVING_AFTER_S = 10.0


@dataclass(frozen=True)
class LearnerArgs:
    """Everything the learner needs to know."""

    config: Config
    spec: EnvSpec
    num_actors: int
    bfloat16: bool
    num_threads: int
    memory: PolicyMemorySpec
    readers: Connection  # where the parent sends the pipe of each policy worker, for the memory to be shared over
    slots: LearnerSlots
    counters: CounterRow
    checkpoints: Path
    recovery: RecoveryMemory
    goes_on_at: int | None  # env steps of the learner that this one succeeds, None for the first of a run
    started_at: float  # time.time() of the start of the run
    stop: StopFlag


def learner(reports: Reports, args: LearnerArgs) -> None:
    """Body of the process. Ends by itself when the run has as many env steps as it shall have."""
    args.counters.working()
    configure(args.num_threads, deterministic=not args.config.sampler.async_rl)
    torch.manual_seed(args.config.run.seed)
    memory = PolicyMemory.create(args.memory)
    state = _LearnerState(args, reports, memory.latest_version)
    state.publish(memory)
    readers = Readers(memory, args.readers)
    loader = _make_loader(args, memory)
    reports.send("ready", env_steps=state.env_steps, seconds_before=state.seconds_before, lost_steps=state.lost_steps)

    counters = args.counters
    reported_at = time.perf_counter()

    def after_step() -> None:
        state.publish(memory)
        counters.working()

    while not (state.is_finished or args.stop.is_set()):
        waiting_since = time.perf_counter()
        counters.waiting()
        batch = loader.next()
        counters.working()
        busy_since = time.perf_counter()
        if batch is None:
            break
        steps = state.updater.train_iteration(batch, state.env_steps, after_step)
        loader.release(batch)
        state.count(batch.num_samples)
        now = time.perf_counter()
        counters.add(steps=batch.num_samples, calls=steps, wait_s=busy_since - waiting_since, busy_s=now - busy_since)
        if now - reported_at > _REPORT_EVERY_S or state.is_finished:
            reported_at = now
            reports.send("train", env_steps=state.env_steps, **state.updater.pop_metrics())
        if state.has_diverged:
            state.roll_back()
            state.publish(memory)
        if state.is_save_due:
            state.save()
        state.remember_if_due()
    reports.send("saving")
    if not state.save():
        raise OSError(f"the last checkpoint could not be written to {args.checkpoints}: see the message above")
    reports.send("finished", env_steps=state.env_steps)
    if args.memory.device != "cpu":
        readers.wait_until_gone()


class _LearnerState:
    """What a checkpoint holds, and when the next one is due."""

    def __init__(self, args: LearnerArgs, reports: Reports, published_version: int) -> None:
        """published_version: of the weights that the learner before this one published last; 0 if there was none."""
        self._args = args
        self._reports = reports
        self.updater = self._new_updater()
        self.env_steps = 0
        self._trained_steps = 0  # of these, what the weights have learned from
        self.seconds_before = 0.0
        self.lost_steps = 0  # taken by the learner before this one, without a trace in the weights
        self._target = args.config.run.target_env_steps(args.spec.frameskip)
        self._save_at = time.monotonic() + args.config.run.save_every_sec
        self._remember_at = time.monotonic()
        self._saved_version: int | None = None
        self._is_save_failing = False
        self._rollbacks = RollbackBudget(args.config.supervision)
        saved = self._latest()
        if saved is not None:
            self.env_steps = saved.state["env_steps"]
            self._trained_steps = saved.state["trained_steps"]
            self.seconds_before = saved.state["seconds"]
            self.updater.load(saved.tensors, saved.state["updater"])
        if args.goes_on_at is not None:
            self.lost_steps = args.goes_on_at - self.env_steps
            self.env_steps = args.goes_on_at
        if published_version > self.updater.version:  # versions only grow: lag is a difference of them
            self.updater.version = published_version + 1
        if saved is not None and args.goes_on_at is None:
            self._saved_version = self.updater.version

    @property
    def is_finished(self) -> bool:
        return self.env_steps >= self._target

    @property
    def has_diverged(self) -> bool:
        """Asked once an iteration, after the last publication has waited for the device in any case."""
        return self._rollbacks.is_due(self.updater.skipped.in_row)

    @property
    def is_save_due(self) -> bool:
        """Not while updates are skipped: the last checkpoint is where to go back to if that does not end."""
        return time.monotonic() >= self._save_at and self.updater.skipped.in_row == 0

    def count(self, num_samples: int) -> None:
        self.env_steps += num_samples
        self._trained_steps += num_samples

    def publish(self, memory: PolicyMemory) -> None:
        memory.publish(self.updater.flat_weights(), self.updater.version)

    def save(self) -> bool:
        """Write a checkpoint, if anything was trained since the last. Where that fails, it is due again soon."""
        if self._saved_version == self.updater.version:
            return True
        config = self._args.config.run
        try:
            path = checkpoint.save(self._args.checkpoints, self._checkpoint(), self.env_steps, config.keep_checkpoints)
        except (OSError, FloatingPointError) as error:
            self._save_at = time.monotonic() + _RETRY_SAVING_AFTER_S
            if not self._is_save_failing:
                self._reports.send("save_failed", message=str(error))
            self._is_save_failing = True
            return False
        self._is_save_failing = False
        self._saved_version = self.updater.version
        self._save_at = time.monotonic() + config.save_every_sec
        self._rollbacks.note_checkpoint()
        self._reports.send("checkpoint", path=str(path))
        return True

    def roll_back(self) -> None:
        """Return to the last checkpoint, or to a new network before the first; env steps stay.

        Not to what a successor would go on with: that is seconds old, and leads here again. Raises FinalError where
        the run is to end instead.
        """
        diverged, supervision = self.updater, self._args.config.supervision
        num_skipped, names = diverged.skipped.in_row, diverged.not_finite()
        self._reports.send("train", env_steps=self.env_steps, **diverged.pop_metrics())  # for the summary, if that ends
        self._rollbacks.spend(num_skipped, names, diverged.learning_rate)
        path = checkpoint.latest(self._args.checkpoints, lambda text: self._reports.send("say", text=text))
        self.updater, trained_steps = self._new_updater(), 0
        if path is not None:
            saved = checkpoint.load(path)
            self.updater.load(saved.tensors, saved.state["updater"])
            trained_steps = saved.state["trained_steps"]
        self.updater.take_over(diverged, supervision.rollback_lr_factor)
        self._reports.send(
            "rolled_back",
            text=f"{num_skipped} updates in a row were not finite ({', '.join(names)}), so it goes back to "
            f"{path.name if path else 'a new network'}, with learning rate {self.updater.learning_rate:g}",
            lost_steps=self._trained_steps - trained_steps,
        )
        self._trained_steps = trained_steps
        # A successor shall not go on with the old state; and the new one has to last before it is saved.
        self._remember_at = time.monotonic()
        self._save_at = time.monotonic() + self._args.config.run.save_every_sec

    def remember_if_due(self) -> None:
        """Keep the state for a successor."""
        if time.monotonic() >= self._remember_at:
            with suppress(FloatingPointError):
                self._args.recovery.write(checkpoint.encode(self._checkpoint()))
            self._remember_at = time.monotonic() + _REMEMBER_EVERY_S

    def _latest(self) -> Checkpoint | None:
        """Of the learner before this one, or else of an earlier part of the run."""
        remembered = self._args.recovery.read()
        if remembered is not None:
            return checkpoint.decode(remembered)
        path = checkpoint.latest(self._args.checkpoints, lambda text: self._reports.send("say", text=text))
        return None if path is None else checkpoint.load(path)

    def _new_updater(self) -> Updater:
        args = self._args
        action_spec = ActionSpec.of(args.spec.action_space)
        return Updater(args.config, args.spec.obs_space, action_spec, args.bfloat16, torch.device(args.memory.device))

    def _checkpoint(self) -> Checkpoint:
        """Raises FloatingPointError where it holds NaN or Inf: nobody could go on with it."""
        if not self.updater.is_finite():
            raise FloatingPointError("the weights are not finite")
        state: dict[str, Any] = {
            "env_steps": self.env_steps,
            "trained_steps": self._trained_steps,
            "seconds": self.seconds_before + time.time() - self._args.started_at,
            "updater": self.updater.state(),
            "config": self._args.config.flat(),
        }
        return Checkpoint(self.updater.tensors(), state)


def _make_loader(args: LearnerArgs, memory: PolicyMemory) -> AsyncLoader | SyncLoader:
    device = torch.device(args.memory.device)
    copier = SlotCopier(args.slots.arrays, memory, device)

    def batch() -> Batch:
        return Batch.empty(args.slots.arrays, args.config.slots_per_iteration, memory.slot_state.shape[1], device)

    if args.config.sampler.async_rl:
        return AsyncLoader(args.slots, copier, (batch(), batch()))
    return SyncLoader(args.slots, copier, batch(), args.num_actors)
