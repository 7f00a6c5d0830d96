"""Holds what a learner goes on with: its updater, and the numbers that a checkpoint keeps beside it."""

from __future__ import annotations

import json
import time
from typing import Any

import torch

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.args import LearnerArgs
from sf.learner.batches.batch import Batch
from sf.learner.checkpoints.content import Origin, make_checkpoint, origin
from sf.learner.compiled.faster_step import FasterStep
from sf.learner.games.buffer import GameBuffer
from sf.learner.gradients.workers import GradientWorkers
from sf.learner.levels import LevelScores
from sf.learner.schedules import Annealing
from sf.learner.update import Updater
from sf.ranks.ranks import ALONE, Ranks
from sf.shared.weights import SharedWeights
from sf.storage.checkpoint import Checkpoint
from sf.system import gpu
from sf.system.processes.child import FinalError

_COMPARE_EVERY = 100  # iterations, the weights of all ranks
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
    """Returns an untrained network with its optimiser. config: takes the place of that in `args`."""
    action_spec, device = ActionSpec.of(args.spec.action_space), gpu.torch_device(args.weights.device)
    helpers = gradient_workers, ranks, faster_step
    obs_space, teams = args.spec.obs_space, args.teams
    return Updater(config, obs_space, action_spec, args.bfloat16, device, *helpers, args.symmetries, teams)


class LearnerState:
    """Holds the updater of a policy, and counts its env steps and the time of the run.

    ranks: train the policy together. hyperparameters: differ from the configuration, by the parent's latest order.
    is_resumed: the updater is that of a checkpoint, and there was no learner before in this run. trained_steps: of the
    env steps, what the weights have learned from. weights_event: number of the decision that gave the policy its
    weights. lost_steps: of the learner before this one, without a trace in the weights. games: that it trains on; None
    where it trains on trajectories as they come.
    """

    def __init__(
        self,
        args: LearnerArgs,
        published_version: int,
        gradient_workers: GradientWorkers | None = None,
        ranks: Ranks = ALONE,
        faster_step: FasterStep | None = None,
    ) -> None:
        """published_version: of the weights that the learner before this one published last; 0 if there was none."""
        self._args = args
        self._gradient_workers, self._faster_step = gradient_workers, faster_step
        self.ranks = ranks
        # The orders to the first rank are for all.
        self.hyperparameters = json.loads(ranks.share(json.dumps(args.hyperparameters).encode()))
        self.updater = self._new_updater()
        self._counts_seconds_from = time.monotonic()
        begins_from = origin(args, ranks)
        begins_from.load_into(self.updater)
        if begins_from.saved is not None and ranks.size > 1:  # the numbers of whoever saved would be those of all
            torch.manual_seed(args.config.run.seed + args.policy_id + begins_from.env_steps)
        if published_version > self.updater.version:  # versions only grow: lag is a difference of them
            self.updater.version = published_version + 1
        self.annealing: Annealing | None = None
        if args.scheduled is not None:
            self.annealing = Annealing(args.scheduled, args.policy_id, args.config.run.stats_avg, ranks)
            self.annealing.load(begins_from.annealing)
        self.levels: LevelScores | None = None
        if args.levels is not None:
            self.levels = LevelScores.of(args.levels, args.config.sampler)
            self.levels.load(begins_from.levels)
        self.cloning: dict[str, Any] = dict(begins_from.cloning)
        self.games: GameBuffer | None = None
        if args.games is not None:
            config = args.config
            samples = config.slots_per_iteration * config.rollout * config.learner.num_epochs
            self.games = GameBuffer(args.games, config.search.samples_per_position, samples)
            self.games.load_if_empty(args.checkpoints)
        self.is_resumed = begins_from.saved is not None and args.predecessor_env_steps is None
        self.env_steps = begins_from.env_steps
        self.trained_steps = begins_from.trained_steps
        self.weights_event = begins_from.weights_event
        self.seconds_before = begins_from.seconds
        self.lost_steps = 0
        self._unsaid_lost_steps = 0
        self._num_iterations = 0
        if args.predecessor_env_steps is None:
            self._counts_seconds_from = args.started_at  # those of a predecessor are in its state
        else:
            self.lost_steps = args.predecessor_env_steps - self.env_steps
            self.env_steps = args.predecessor_env_steps
        if self.annealing is not None:
            self.annealing.publish(self.env_steps)

    @property
    def seconds(self) -> float:
        """Returns the wall time of the run, earlier parts of it included."""
        return self.seconds_before + time.monotonic() - self._counts_seconds_from

    @property
    def share_done(self) -> float:
        """Returns how much of the run is done, from 0 to 1."""
        return self._args.end.share_done(self.env_steps, self.seconds)

    @property
    def has_trained(self) -> bool:
        """Returns whether an iteration has ended since this process began, or demonstrations were cloned."""
        return self._num_iterations > 0 or self.cloning.get("steps", 0) > 0

    @property
    def is_finished(self) -> bool:
        return self._args.target_env_steps is not None and self.env_steps >= self._args.target_env_steps

    def count(self, env_steps: int, lost_steps: int = 0, has_trained: bool = True) -> None:
        """Count an iteration. lost_steps: env steps that were taken, and not trained on. has_trained: False where it
        only waited for games. Raises FinalError if the ranks have come to different weights."""
        self.env_steps += env_steps + lost_steps
        self._unsaid_lost_steps += lost_steps
        self.trained_steps += env_steps
        self._num_iterations += has_trained
        if self._num_iterations % _COMPARE_EVERY == 0 and not self.ranks.have_the_same(self.updater.flat_weights()):
            raise FinalError(_NOT_THE_SAME)

    def pop_lost_steps(self) -> int:
        """Returns the lost steps of all ranks since the last call on the first rank, and 0 on the others."""
        lost, self._unsaid_lost_steps = self._unsaid_lost_steps, 0
        return lost if self._args.place.is_first else 0

    def look_at_levels(self, batch: Batch) -> None:
        """Learn from the data of an iteration which levels are to be played, and tell rollout workers."""
        if self.levels is not None:
            assert self._args.levels is not None
            self.levels.look(self.updater.config_now, batch, self.ranks)
            self._args.levels.arrays["probabilities"][self._args.policy_id] = self.levels.probabilities()

    def publish_teaching(self) -> None:
        """Tell policy workers how much is left of the teacher's weight."""
        if self._args.teaching is not None:
            first = self._args.config.learner.teacher_coeff
            left = self.updater.config_now.teacher_coeff / first if first else 0.0
            self._args.teaching.write(self._args.policy_id, left)

    def publish(self, weights: SharedWeights) -> None:
        weights.publish(self.updater.flat_weights(), self.updater.version)

    def go_back_to(self, saved: Origin) -> None:
        """Go on with a new updater from an earlier state. Env steps stay."""
        self.updater = self._new_updater()
        saved.load_into(self.updater)
        self.weights_event, self.trained_steps = saved.weights_event, saved.trained_steps

    def checkpoint(self) -> Checkpoint:
        """Raises FloatingPointError if it holds NaN or Inf."""
        numbers = self.env_steps, self.trained_steps, self.seconds, self.weights_event
        annealing = {} if self.annealing is None else self.annealing.state()
        levels = {} if self.levels is None else self.levels.state()
        others = annealing, levels, self.cloning
        return make_checkpoint(self.updater, self._args.config, self._args.spec, *numbers, *others)

    def _new_updater(self) -> Updater:
        updater = new_updater(self._args, self._args.config, self._gradient_workers, self.ranks, self._faster_step)
        updater.set_hyperparameters(self.hyperparameters)
        return updater
