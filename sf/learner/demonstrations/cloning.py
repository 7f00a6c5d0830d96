"""Behaviour cloning: a policy is trained on demonstrations alone, before a run begins (`--bc_steps`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sf.envs.spaces.actions import ACTION_MASK
from sf.learner.args import LearnerArgs
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.callback import IterationCallback
from sf.learner.demonstrations.field import DEMONSTRATED
from sf.learner.demonstrations.sampler import DemonstrationSampler
from sf.learner.state import LearnerState
from sf.shared.policy_view import PolicyView
from sf.storage import checkpoint
from sf.system.messages import say

_LOOKS = 50  # at the held-out episodes, in all steps
_LOOKS_AT = 512  # trajectories of them
_SAYS_EVERY_S = 5.0
_ALONE = {"policy_loss_coeff": 0.0, "exploration_loss_coeff": 0.0, "teacher_coeff": 0.0, "demo_coeff": 1.0}


@dataclass(frozen=True)
class _Callback(IterationCallback):
    """Asks between optimiser steps whether the run is to stop, and publishes nothing.

    A synchronous run finishes its iteration, so that it can be resumed to the bit.
    """

    args: LearnerArgs

    def goes_on(self) -> bool:
        self.args.counters.working()
        return not self.args.config.sampler.async_rl or not self.args.stop.is_set()


class Cloning:
    """Trains until the steps are done, or the held-out episodes are predicted no better.

    The state of the learner has `state`, so that a learner that goes on does so with the next step. The best weights
    are a checkpoint in the directory of the run.
    """

    def __init__(self, args: LearnerArgs, state: LearnerState, demonstrations: DemonstrationSampler) -> None:
        self._args, self._state, self._demonstrations = args, state, demonstrations
        self._steps = args.config.learner.bc_steps
        layout = PolicyView(args.spec).layout(args.slots.arrays)
        num, size, device = args.config.trajectories_per_iteration, args.states.size, args.weights.device
        self._buffer = BatchBuffer(layout, num, size, device)
        self._best = best_of(args.checkpoints)

    @staticmethod
    def is_due(args: LearnerArgs, state: LearnerState) -> bool:
        """Returns whether there is some left to do: not where the run has begun."""
        is_new = state.trained_steps == 0
        return bool(args.config.learner.bc_steps) and is_new and not state.cloning.get("is_over", False)

    def run(self, save: Callable[[], None]) -> None:
        """Train. save: called after each iteration. It ends early where the run is to stop."""
        progress, callback = self._state.cloning, _Callback(self._args)
        if not progress:
            progress.update(steps=0, looked_at=0, best_loss=None, best_at=0, looks_without_gain=0)
        say(f"cloning: {self._steps:,} optimiser steps on demonstrations, before the first rollout")
        said_at = time.monotonic()
        patience = self._args.config.learner.bc_patience
        while progress["steps"] < self._steps and progress["looks_without_gain"] < patience:
            self._buffer.wait_until_sent()
            self._demonstrations.fill_for_training(self._buffer.host)
            self._buffer.send_as_it_is()
            steps = self._state.updater.train_iteration(self._buffer.receive(), 0.0, callback, _ALONE)
            self._buffer.release()
            progress["steps"] += steps
            if self._is_to_stop():
                return
            if progress["steps"] >= progress["looked_at"] + self._steps / _LOOKS:
                self._look()
            if time.monotonic() - said_at >= _SAYS_EVERY_S:
                said_at = time.monotonic()
                self._say()
            save()
        self._say()
        if progress["best_loss"] is not None and progress["best_at"] < progress["steps"]:
            self._state.updater.copy(dict(checkpoint.load(self._best).tensors))
        progress["is_over"] = True

    def _is_to_stop(self) -> bool:
        return self._args.stop.is_set()

    def _look(self) -> None:
        """See how well the held-out episodes are predicted, and keep the weights if they are the best."""
        progress = self._state.cloning
        loss = self._held_out_loss()
        progress.update(looked_at=progress["steps"], loss=loss)
        if loss is None:
            return
        progress["looks_without_gain"] += 1
        if progress["best_loss"] is None or loss < progress["best_loss"]:
            progress.update(best_loss=loss, best_at=progress["steps"], looks_without_gain=0)
            self._best.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(self._best, self._state.checkpoint())

    def _held_out_loss(self) -> float | None:
        """Returns the mean negative log-likelihood of a decision, in nats; None where no episode is held out."""
        total, num = 0.0, 0.0
        self._buffer.wait_until_sent()
        for _ in self._demonstrations.held_out(self._buffer.host, _LOOKS_AT):
            self._buffer.send_as_it_is()
            batch = self._buffer.receive()
            policy = self._state.updater.evaluate(batch)
            counts = batch.fields[DEMONSTRATED]
            if ACTION_MASK in batch.obs:
                counts = counts & policy.has_choice()
            log_prob = policy.log_prob(batch.discrete, batch.continuous)
            total -= float(log_prob.where(counts, log_prob.new_zeros(())).sum())
            num += float(counts.sum())
            self._buffer.release()
            self._buffer.wait_until_sent()
            self._args.counters.working()
        return total / num if num and math.isfinite(total) else None

    def _say(self) -> None:
        progress = self._state.cloning
        trained = self._state.updater.pop_metrics().get("demonstrations/loss")
        losses = {"loss": trained, "of held-out episodes": progress.get("loss")}
        said = "".join(f", {name} {loss:.4f}" for name, loss in losses.items() if loss is not None)
        say(f"cloning: step {progress['steps']:,} of {self._steps:,}{said}")


def best_of(checkpoints: Path) -> Path:
    """Returns where the weights are that predict held-out episodes best. checkpoints: the directory of a policy's."""
    return checkpoints / "cloned" / "best.safetensors"
