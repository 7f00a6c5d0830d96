"""Training on a batch: what is fresh enough, the minibatches of all epochs, the schedules, and the version.

Nothing here waits for the device, except for the KL-adaptive schedule, which needs a number after each iteration.
Publishing the weights follows each step and waits for the publication before, so the host is at most one step ahead of
the GPU.

A step that is skipped because it is not finite makes a new version all the same: the host does not know of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import gymnasium as gym
import torch
from torch import Tensor

from sf.config import Config
from sf.config.schedules import Stage
from sf.envs import ActionSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.symmetries import Symmetry
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Cut, Minibatch, cut, of_all
from sf.learner.batches.symmetric_images import SymmetricImages
from sf.learner.callback import NO_CALLBACK, IterationCallback
from sf.learner.checkpoints.tensors import are_finite, load_tensors, never_finite, tensors_of
from sf.learner.compiled.faster_step import FasterStep
from sf.learner.gradients.workers import GradientWorkers
from sf.learner.intrinsic.curiosity import Curiosity
from sf.learner.intrinsic.field import NONE
from sf.learner.loss.iteration import Evaluation, needs_evaluation, prepare
from sf.learner.loss.masks import has_outcome
from sf.learner.optimizer.learning_rate import LearningRate
from sf.learner.optimizer.optimizer import Optimizer
from sf.learner.optimizer.step import OptimizerStep
from sf.learner.schedules import schedules_of_flags
from sf.learner.training_metrics import SkippedUpdates, TrainingMetrics
from sf.model.building import build_model
from sf.model.distributions import ActionDistribution
from sf.model.inference import Flat, num_weights
from sf.model.normalizers import RunningMoments
from sf.model.task_returns import advantage_scale, scale_of
from sf.ranks.ranks import ALONE, Ranks


class Updater:
    """Trains a network with its optimiser.

    version: number of the policy, 1 before the first optimiser step and one more after each. config_now: the
    configuration with what the run's progress has changed.
    skipped: optimiser steps that were not finite. metrics: of all steps since the last report.
    """

    def __init__(
        self,
        config: Config,
        obs_space: gym.spaces.Dict,
        action_spec: ActionSpec,
        bfloat16: bool,
        device: torch.device,
        gradient_workers: GradientWorkers | None = None,
        ranks: Ranks = ALONE,
        faster_step: FasterStep | None = None,
        symmetries: Sequence[Symmetry] = (),
        teams: Sequence[int] = (),
    ) -> None:
        """gradient_workers: compute a part of each minibatch. ranks: train this network together, with the same calls.
        faster_step: takes the steps that it can. symmetries: to augment the data by. teams: [A] of the agents of an
        environment, whose trajectories stand side by side in each batch; empty where agents are trained one by one."""
        self._config = config.learner
        self.config_now = self._config
        self._scheduled: dict[str, float] = {}  # the same by name
        self._has_end = config.run.ends_by_steps or config.run.ends_by_seconds
        self._max_policy_lag = config.sampler.max_policy_lag
        self._num_own = config.slots_per_iteration  # trajectories of a batch; the others are demonstrated
        self._device = device
        self._num_together = max(1, len(teams))
        self.model = build_model(config.model, obs_space, action_spec, teams).to(device)
        self._is_central = config.model.has_central_critic
        self._teammates: Tensor | None = None
        if config.model.mixer != "none":
            of_agents = torch.tensor(teams, device=device)
            self._teammates = (of_agents[:, None] == of_agents).float()
        self._ranks = ranks
        for part in self.model.modules():
            if isinstance(part, RunningMoments):
                part.ranks = ranks
        self._images = SymmetricImages(symmetries, device) if symmetries else None
        self._never_finite = never_finite(self.model)
        self._optimizer = Optimizer(self._config, self.model)
        self._optimizer_step = OptimizerStep(
            self.model, self._optimizer, action_spec, bfloat16, device, gradient_workers, ranks, faster_step
        )
        self._curiosity: Curiosity | None = None
        if self._config.intrinsic != NONE:
            self._curiosity = Curiosity(config, obs_space, bfloat16, device, ranks)
        self.version = 1
        self._oldest_version = 0  # that is trained on
        self.skipped = SkippedUpdates(device)
        self.metrics = TrainingMetrics()
        self._learning_rate = LearningRate(self._optimizer)
        self._flat = Flat(self.model, torch.empty(num_weights(self.model), device=device))

    @property
    def learning_rate(self) -> float:
        return self._learning_rate.value

    @property
    def helper(self) -> GradientWorkers | FasterStep | None:
        """Returns what `OptimizerStep.helper` does."""
        return self._optimizer_step.helper

    def train_iteration(
        self,
        batch: Batch,
        share_done: float,
        callback: IterationCallback = NO_CALLBACK,
        annealed: Mapping[str, float] = MappingProxyType({}),
    ) -> int:
        """Train `num_epochs` times on the batch, or until the callback says no.

        share_done: of the run before this batch, from 0 to 1, for the schedules of flags. annealed: values of fields of
        LearnerConfig by other schedules, by name. Returns the number of optimiser steps, which may be 0 if the callback
        has said no.
        """
        self._set_schedules(share_done, annealed)
        if batch.num_trajectories > self._num_own and self.config_now.demo_coeff == 0:  # demonstrations of no weight
            batch = batch.columns(torch.arange(self._num_own, device=self._device))
        # [T, B], as the data arrives. Rows that are not valid may bear the version of another policy.
        lag = torch.where(batch.valid, self.version - batch.policy_version, 0)
        fresh = batch.valid & (lag <= self._max_policy_lag) & (batch.policy_version >= self._oldest_version)
        acts = batch.acts()
        mask = fresh if acts is None else fresh & has_outcome(acts, batch.terminated, batch.valid)
        # Without the last row, which begins the next trajectory, and without what an absent agent does not see.
        self.model.update_normalizers({key: obs[:-1] for key, obs in batch.obs.items()}, batch.valid)
        trains_policy = self.config_now.policy_loss_coeff > 0
        if self._curiosity is not None and trains_policy:
            batch = self._curiosity.added_to(batch)
        version_before = self.version
        num_used = torch.zeros((), device=self._device)
        self._optimizer_step.begin_iteration()
        for part in self._cuts(batch, mask, callback):
            if not callback.goes_on():
                break
            results = self._optimizer_step.take(part, self._config, self.config_now)
            self.skipped.count(results.pop("is_skipped"))
            num_used += results["num_samples"]
            self.metrics.add_step(results)
            self.version += 1
            self._learning_rate.count_step()
            callback.after_step()
        num_steps = self.version - version_before
        if (
            self._config.lr_schedule == "kl_adaptive"
            and num_steps == self._config.steps_per_iteration
            and trains_policy
            and not self._is_taught
        ):
            self._learning_rate.adapt(self.config_now, self.metrics, self.model.value_norm)
        of_curiosity = {}
        if self._curiosity is not None and trains_policy and num_steps == self._config.steps_per_iteration:
            of_curiosity = self._curiosity.learn(batch)
        self.metrics.add_iteration(
            {
                **of_curiosity,
                "lag_mean": lag.sum() / batch.valid.sum().clamp(min=1),
                "lag_max": lag.max(),
                "sample_reuse": num_used / (self._ranks.size * batch.valid.sum()).clamp(min=1),
                "masked_share": (batch.valid & ~fresh).sum() / batch.valid.sum().clamp(min=1),
                **self._clipped_share(batch),
            }
        )
        return num_steps

    @property
    def _is_taught(self) -> bool:
        """Returns whether the policy is to move far, towards a teacher or a demonstrator."""
        config = self.config_now
        return bool(config.teacher and config.teacher_coeff > 0) or bool(
            config.demonstrations and config.demo_coeff > 0
        )

    def evaluate(self, batch: Batch) -> ActionDistribution:
        """Returns the policy of [T, B], without gradients."""
        with torch.no_grad():
            return self._optimizer_step.evaluate(batch)[0]

    def _set_schedules(self, share_done: float, annealed: Mapping[str, float]) -> None:
        stage = Stage(share_done=share_done)
        of_flags = schedules_of_flags(self._config, self._has_end)
        self._scheduled = {**{each.name: each.value(stage) for each in of_flags}, **annealed}
        values: dict[str, Any] = dict(self._scheduled)
        if "learning_rate" in values:
            self._learning_rate.set(values.pop("learning_rate"))
        if "lr_adaptive_max" in values:
            values["lr_adaptive_max"] = max(values["lr_adaptive_max"], self._config.lr_adaptive_min)
        self.config_now = dataclasses.replace(self._config, **values) if values else self._config

    def _clipped_share(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the share of rewards that `reward_clip` changes; nothing without a bound."""
        bound = self._config.reward_clip
        if not bound:
            return {}
        is_clipped = batch.valid & ((batch.reward * self.config_now.reward_scale).abs() > bound)
        return {"clipped_reward_share": is_clipped.sum() / batch.valid.sum().clamp(min=1)}

    def pop_metrics(self) -> dict[str, float]:
        """Returns what was measured since the last call, see `TrainingMetrics.pop`, and the present settings."""
        workers = self._optimizer_step.workers
        return {
            **{name: value for name, value in self._scheduled.items() if name == "exploration_loss_coeff"},
            **({"teacher/coeff": self.config_now.teacher_coeff} if self._config.teacher else {}),
            **({"demonstrations/coeff": self.config_now.demo_coeff} if self._config.demonstrations else {}),
            "learning_rate": self._learning_rate.now,
            "policy_version": float(self.version),
            "skipped_updates": float(self.skipped.total),
            "gradient_share": workers.share if workers is not None else 0.0,
            "num_threads": float(torch.get_num_threads()),
            **self.metrics.pop(),
        }

    def flat_weights(self) -> Tensor:
        """Returns all weights and buffers [W] float32, which the next call overwrites."""
        self._flat.write()
        return self._flat.vector

    def tensors(self) -> dict[str, Tensor]:
        """Returns the tensors of a checkpoint: network, optimiser, and the state of the random numbers."""
        beside = {} if self._curiosity is None else self._curiosity.tensors()
        return {**tensors_of(self.model, self._optimizer), **beside}

    def state(self) -> dict[str, Any]:
        """Returns the numbers that a checkpoint keeps beside the tensors."""
        return {
            "version": self.version,
            "oldest_version": self._oldest_version,
            "learning_rate": self.learning_rate,
            "learning_rate_flag": self._config.learning_rate,
            "max_learning_rate": self._learning_rate.ceiling,
            "steps_since_surgery": self._learning_rate.steps_since_surgery,
            "skipped_updates": self.skipped.total,
        }

    def is_finite(self) -> bool:
        """Returns whether all tensors of a checkpoint are finite, but for those that were not in the new network."""
        return are_finite(self.tensors(), but_for=self._never_finite)

    def load(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on from what `tensors` and `state` returned for the same network."""
        load_tensors(self.model, self._optimizer, tensors)
        if self._curiosity is not None:
            self._curiosity.load(tensors)
        self.version = state["version"]
        self._oldest_version = state.get("oldest_version", 0)
        self.skipped = SkippedUpdates(self._device, state["skipped_updates"])
        self._learning_rate.ceiling = state["max_learning_rate"]
        self._learning_rate.steps_since_surgery = state.get("steps_since_surgery")
        flag = self._config.learning_rate
        # A schedule goes on from where it was, unless somebody has asked for another rate meanwhile.
        goes_on = self._config.lr_schedule != "constant" and state.get("learning_rate_flag", flag) == flag
        self._learning_rate.set(state["learning_rate"] if goes_on else flag)

    def copy(self, tensors: dict[str, Tensor]) -> None:
        """Go on with another policy's weights, statistics and moments. Data from before is never trained on.

        The learning rate is no longer held below that at which the weights from before diverged.
        """
        random_numbers, version = torch.get_rng_state(), self.version + 1
        changed = {"version": version, "oldest_version": version, "max_learning_rate": math.inf}
        self.load(tensors, {**self.state(), **changed})
        torch.set_rng_state(random_numbers)

    def set_hyperparameters(self, hyperparameters: Mapping[str, float]) -> None:
        """Set fields of LearnerConfig by name for the next steps. A schedule may change the learning rate further."""
        self._config = dataclasses.replace(self._config, **cast("dict[str, Any]", dict(hyperparameters)))
        if "learning_rate" in hyperparameters:
            self._learning_rate.set(self._config.learning_rate)

    def take_over(self, diverged: Updater, learning_rate_factor: float) -> None:
        """Go on in the place of an updater that has diverged, with a learning rate that stays lower."""
        self.version = diverged.version + 1  # its own may have been published with other weights
        self.skipped = SkippedUpdates(self._device, diverged.skipped.total)
        self._learning_rate.ceiling = learning_rate_factor * min(self.learning_rate, diverged._learning_rate.ceiling)
        self._learning_rate.set(self.learning_rate)

    def _cuts(self, batch: Batch, mask: Tensor, callback: IterationCallback) -> Iterator[Cut]:
        """Yields the minibatches of all epochs, or none if the callback says no before the first."""
        if self._config.steps_per_iteration == 1:
            yield Cut(Minibatch(batch, mask, batch.log_prob, teammates=self._teammates), None, self._num_together)
            return
        seen_batches = [(batch, mask)]  # as it was played, and its image if data is augmented
        if self._images is not None:
            seen_batches.append(self._images.one_of(batch, mask))
        wholes = []  # that the epochs are of, in turn
        for seen in seen_batches:
            whole = self._prepare(*seen, callback)
            if whole is None:
                return
            wholes.append(whole)
        for epoch in range(self._config.num_epochs):
            whole = wholes[epoch % len(wholes)]
            yield from cut(whole, self._config.num_batches_per_epoch, self._num_together)

    def _prepare(self, batch: Batch, mask: Tensor, callback: IterationCallback) -> Minibatch | None:
        """Returns the iteration with all that is computed once for its steps, or None if the callback says no."""
        whole = Minibatch(batch, mask, batch.log_prob, teammates=self._teammates)
        has_memory = bool(self.model.state_size)
        if not (self._is_central or needs_evaluation(self._config, has_memory)):
            return whole
        before = self._evaluate_before(batch, callback)
        if before is None:
            return None
        if self._is_central:  # policy workers compute no value: the one that the loss clips around is that of now
            whole = whole._replace(batch=batch.replaced(value=before.value[:-1]))
        of_advantage = advantage_scale(self.model.value_norm, batch.obs)
        return prepare(self.config_now, whole, before, has_memory, self._ranks, of_advantage)

    def _evaluate_before(self, batch: Batch, callback: IterationCallback) -> Evaluation | None:
        """Evaluate all trajectories in parts as large as a step's. Returns None if the callback says no before one."""
        columns = torch.arange(batch.num_trajectories // self._num_together, device=self._device)
        log_probs, values, choices = [], [], []
        with torch.no_grad():
            for some in columns.chunk(self._config.num_batches_per_epoch):
                if not callback.goes_on():
                    return None
                part = batch.columns(of_all(some, self._num_together))
                policy, value = self._optimizer_step.evaluate(part)
                log_probs.append(policy.log_prob(part.discrete, part.continuous))
                values.append(scale_of(self.model.value_norm, part.obs).denormalize(value))
                if ACTION_MASK in batch.obs:
                    choices.append(policy.has_choice())
        has_choice = torch.cat(choices, dim=1) if choices else None
        return Evaluation(torch.cat(log_probs, dim=1), torch.cat(values, dim=1), has_choice)
