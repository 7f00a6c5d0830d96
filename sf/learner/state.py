"""What the learner goes on with, and leaves behind: network, optimiser and counters."""

from __future__ import annotations

import time
from contextlib import suppress

import torch

from sf import gpu
from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.args import LearnerArgs
from sf.learner.checkpoints.milestones import Milestones
from sf.learner.checkpoints.origin import last_checkpoint, origin
from sf.learner.checkpoints.periodic import PeriodicCheckpoints
from sf.learner.checkpoints.snapshot import make_checkpoint
from sf.learner.compiled.faster_step import FasterStep
from sf.learner.divergence import RollbackBudget
from sf.learner.gradients.workers import GradientWorkers
from sf.learner.orders import Orders
from sf.learner.update import Updater
from sf.processes.child import FinalError
from sf.processes.reports import Reports, RolledBack, Trained
from sf.ranks.ranks import ALONE, Ranks
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.output_file import is_full
from sf.storage.run_dir import UNSAVED
from sf.weights import SharedWeights

_REMEMBER_EVERY_S = 5.0  # a successor loses this much training, unless writing takes long
_REMEMBER_FOR_SNAPSHOTS_EVERY_S = 1.0  # which are taken of this state
_REMEMBER_COSTS = 0.02  # the largest share of the time of the training thread
_SAVE_AGAIN_AFTER_S = 2.0  # at the end of the run
_SAVE_AGAIN_TIMES = 5
_COMPARE_EVERY = 100  # iterations, the weights of all ranks
_NOT_SAVED = (
    f"{UNSAVED} {{}} ({{}}): {{}}. The same command goes on from the newest checkpoint, and what was trained since "
    "is lost"
)
_NOT_THE_SAME = (
    "the weights of the ranks are no longer the same to the bit: give all machines the same versions and kinds of "
    "processors; the same command goes on from the last checkpoint"
)


def new_updater(
    args: LearnerArgs,
    config: Config,
    gradient_workers: GradientWorkers | None = None,
    ranks: Ranks = ALONE,
    faster_step: FasterStep | None = None,
) -> Updater:
    """An untrained network and its optimiser. config: takes the place of that in `args`."""
    action_spec = ActionSpec.of(args.spec.action_space)
    device = gpu.torch_device(args.weights.device)
    bfloat16 = args.bfloat16
    obs_space, symmetries = args.spec.obs_space, args.symmetries
    return Updater(config, obs_space, action_spec, bfloat16, device, gradient_workers, ranks, faster_step, symmetries)


class LearnerState:
    """What a learner knows beside its batches, and all that it hands on: by checkpoints, or to a successor."""

    def __init__(
        self,
        args: LearnerArgs,
        reports: Reports,
        published_version: int,
        gradient_workers: GradientWorkers | None = None,
        ranks: Ranks = ALONE,
        faster_step: FasterStep | None = None,
    ) -> None:
        """published_version: of the weights that the learner before this one published last; 0 if there was none."""
        self._args = args
        self._gradient_workers, self._faster_step = gradient_workers, faster_step
        self._ranks = ranks
        self._reports = reports
        self._recovery = args.recoveries[args.policy_id]
        self._orders = Orders(args.orders, args.recoveries, args.hyperparameters, reports.say)
        self.updater = self._new_updater()
        if ranks.size > 1:
            self._follow_the_first(None)
        self._counts_seconds_from = time.monotonic()
        begins_from = origin(args, ranks, reports.say)
        begins_from.load_into(self.updater)
        if begins_from.saved is not None and ranks.size > 1:  # the numbers of whoever saved would be those of all
            torch.manual_seed(args.config.run.seed + args.policy_id + begins_from.env_steps)
        if published_version > self.updater.version:  # versions only grow: lag is a difference of them
            self.updater.version = published_version + 1
        self.env_steps = begins_from.env_steps
        self._trained_steps = begins_from.trained_steps  # of these, what the weights have learned from
        self.weights_event = begins_from.weights_event
        self.seconds_before = begins_from.seconds
        self.lost_steps = 0  # that the learner before this one took, without a trace in the weights
        self._unsaid_lost_steps = 0
        self._num_iterations = 0
        self._checkpoints = PeriodicCheckpoints(args.checkpoints, args.config.run, reports)
        if args.predecessor_env_steps is None:
            self._counts_seconds_from = args.started_at  # those of a predecessor are in its state
            self._checkpoints.saved_version = None if begins_from.saved is None else self.updater.version
        else:
            self.lost_steps = args.predecessor_env_steps - self.env_steps
            self.env_steps = args.predecessor_env_steps
        self._milestones = Milestones(args.milestones, args.config.run.save_milestones_sec, self.seconds, reports)
        self._remember_at = time.monotonic()
        has_snapshots = args.config.players.with_players and args.config.players.snapshot_every_env_steps > 0
        self._remember_every_s = _REMEMBER_FOR_SNAPSHOTS_EVERY_S if has_snapshots else _REMEMBER_EVERY_S
        self._rollbacks = RollbackBudget(args.config.supervision)

    @property
    def seconds(self) -> float:
        """Wall time of the run, earlier parts of it included."""
        return self.seconds_before + time.monotonic() - self._counts_seconds_from

    @property
    def share_done(self) -> float:
        """Of the whole run, from 0 to 1."""
        return self._args.end.share_done(self.env_steps, self.seconds)

    @property
    def has_trained(self) -> bool:
        """Whether an iteration has ended since this process began."""
        return self._num_iterations > 0

    @property
    def _is_new(self) -> bool:
        """Whether nothing was trained, or saved, since the run first began."""
        return self.env_steps == 0 and not self.has_trained and self._checkpoints.saved_version is None

    @property
    def is_finished(self) -> bool:
        return self._args.target_env_steps is not None and self.env_steps >= self._args.target_env_steps

    @property
    def has_diverged(self) -> bool:
        """Asked once an iteration, after the last publication has waited for the device in any case."""
        return self._rollbacks.is_due(self.updater.skipped.in_row)

    @property
    def is_save_due(self) -> bool:
        """Not while updates are skipped: the last checkpoint is where to go back to if that does not end."""
        return self._checkpoints.is_due and self.updater.skipped.in_row == 0

    @property
    def has_orders(self) -> bool:
        return self._orders.are_waiting

    def count(self, env_steps: int, lost_steps: int = 0) -> None:
        """An iteration is done. lost_steps: that were taken, and not trained on. Raises FinalError where the ranks have
        come to different weights."""
        self.env_steps += env_steps + lost_steps
        self._unsaid_lost_steps += lost_steps
        self._trained_steps += env_steps
        self._num_iterations += 1
        if self._num_iterations % _COMPARE_EVERY == 0 and not self._ranks.have_the_same(self.updater.flat_weights()):
            raise FinalError(_NOT_THE_SAME)

    def pop_lost_steps(self) -> int:
        """Of all ranks, since the last call, as the first says it; 0 on the others."""
        lost, self._unsaid_lost_steps = self._unsaid_lost_steps, 0
        return lost if self._args.place.is_first else 0

    def apply_orders(self) -> bool:
        """Carry out what the parent has decided over this policy: that of the first rank, which has orders, for all.

        Returns whether the policy has other weights now.
        """
        weights_event = None
        if self._args.place.is_first:
            weights_event = self._orders.carry_out(self.updater)
        if self._ranks.size > 1:
            weights_event = self._follow_the_first(weights_event)
        if weights_event is None:
            return False
        self.weights_event = weights_event
        self._checkpoints.make_due()  # the weights from before are of no use any more
        self._remember_at = time.monotonic()
        return True

    def publish(self, weights: SharedWeights) -> None:
        weights.publish(self.updater.flat_weights(), self.updater.version)

    def save(self) -> bool:
        """Write a checkpoint, if anything was trained since the last. Where that fails, it is due again soon."""
        if self._checkpoints.saved_version == self.updater.version or not self._args.place.saves:
            return True
        is_saved = self._checkpoints.save(self._checkpoint, self.updater.version, self.env_steps)
        if is_saved:
            self._rollbacks.note_checkpoint()
        return is_saved

    def save_at_the_end(self) -> None:
        """The last checkpoint. Waits some seconds for room on the disk.

        None where the run failed before anything was trained: weights that are as new would bind the next start to
        spaces and flags that the person has to change.

        Raises FinalError where there is none, after it has kept the state, which the parent tries to save. Raises
        FloatingPointError where the state holds NaN or Inf: a successor has one that does not.
        """
        if self._args.stop.is_after_failure() and self._is_new:
            return
        if self.save():
            return
        self._remember()
        for _ in range(_SAVE_AGAIN_TIMES):
            error = self._checkpoints.error
            if not isinstance(error, OSError):
                raise FloatingPointError(f"the last checkpoint could not be written: {error}")
            time.sleep(_SAVE_AGAIN_AFTER_S)
            self._args.counters.working()
            if self.save():
                return
        error = self._checkpoints.error
        how = "make room there" if is_full(error) else "make it writable"
        raise FinalError(_NOT_SAVED.format(self._args.checkpoints, error, how))

    def keep_milestone_if_due(self) -> None:
        """Not while updates are skipped, as for checkpoints."""
        if not self._args.place.is_first:
            return
        if self._milestones.is_due(self.seconds) and self.updater.skipped.in_row == 0:
            self._milestones.keep(self._checkpoint, self.seconds)

    def roll_back(self) -> None:
        """Return to the last checkpoint, or to a new network before the first. Env steps stay.

        The state for a successor is no way back: it is seconds old, and training from it diverges again. Raises
        FinalError where the run has to end instead.
        """
        diverged, supervision = self.updater, self._args.config.supervision
        num_skipped, names = diverged.skipped.in_row, diverged.metrics.not_finite()
        self._reports.send(Trained(self.env_steps, diverged.pop_metrics()))  # for the summary, if that ends
        if self._args.place.is_first:  # the others end with it
            self._rollbacks.spend(num_skipped, names, diverged.learning_rate)
        goes_back_to = last_checkpoint(self._args, self._ranks, self._reports.say)
        self.updater = self._new_updater()
        goes_back_to.load_into(self.updater)
        self.weights_event = goes_back_to.weights_event
        self.updater.take_over(diverged, supervision.rollback_lr_factor)
        text = (
            f"{num_skipped} updates in a row were not finite ({', '.join(names)}), so it goes back to "
            f"{goes_back_to.description}, with learning rate {self.updater.learning_rate:g}"
        )
        lost_steps = 0
        if self._args.place.is_first:  # those of all ranks
            lost_steps = self._trained_steps - goes_back_to.trained_steps
        self._reports.send(RolledBack(text, lost_steps, self.weights_event))
        self._trained_steps = goes_back_to.trained_steps
        # A successor must not go on with the old state, and the new one has to last before it is saved.
        self._remember_at = time.monotonic()
        self._checkpoints.postpone()

    def remember_if_due(self) -> None:
        """Keep the state for a successor."""
        if time.monotonic() >= self._remember_at:
            begun_at = time.monotonic()
            self._remember()
            now = time.monotonic()
            self._remember_at = now + max(self._remember_every_s, (now - begun_at) / _REMEMBER_COSTS)

    def _remember(self) -> None:
        with suppress(FloatingPointError):
            self._recovery.write(self._checkpoint())

    def _follow_the_first(self, weights_event: int | None) -> int | None:
        """Take over from the first rank its hyperparameters and, where it has other weights, these. Returns their
        event."""
        is_first = self._ranks.rank == 0
        tensors = self.updater.tensors() if weights_event is not None else {}
        decided = {"weights_event": weights_event, "hyperparameters": dict(self._orders.hyperparameters)}
        data = self._ranks.share(checkpoint.encode(Checkpoint(tensors, decided)) if is_first else b"")
        if is_first:
            return weights_event
        saved = checkpoint.decode(data)
        if saved.state["weights_event"] is not None:
            self.updater.copy(saved.tensors)
        self._orders.hyperparameters = saved.state["hyperparameters"]
        self.updater.set_hyperparameters(self._orders.hyperparameters)
        return saved.state["weights_event"]

    def _new_updater(self) -> Updater:
        updater = new_updater(self._args, self._args.config, self._gradient_workers, self._ranks, self._faster_step)
        updater.set_hyperparameters(self._orders.hyperparameters)
        return updater

    def _checkpoint(self) -> Checkpoint:
        """Raises FloatingPointError where it holds NaN or Inf."""
        return make_checkpoint(
            self.updater,
            self._args.config,
            self._args.spec,
            self.env_steps,
            self._trained_steps,
            self.seconds,
            self.weights_event,
        )
