"""Training on a batch: forward pass, targets, loss, backward pass, Adam.

Nothing here waits for the device: metrics stay tensors until they are asked for (the KL-adaptive schedule, which has to
know a number after each iteration, is the exception). Publishing the weights, which follows each step, waits for the
publication before: the host is one step ahead of the GPU at most.

A step whose loss or gradients are not finite changes nothing: weights, moments and statistics stay as they were, and so
finite. It makes a version of its own all the same, since the host does not know of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import gymnasium as gym
import torch
from torch import Tensor

from sf.config import Config
from sf.envs import ActionSpec
from sf.envs.actions import ACTION_MASK
from sf.learner import schedules
from sf.learner.batch import Batch
from sf.learner.divergence import SkippedUpdates
from sf.learner.minibatches import Minibatch, cut_into_steps, cut_into_trajectories
from sf.learner.ppo import PPOLoss, ppo_loss
from sf.learner.targets import make_targets
from sf.learner.tensors import are_finite, load_tensors, tensors_of
from sf.model.distributions import ActionDistribution
from sf.model.inference import num_weights, write_flat
from sf.model.registry import build_model

_PARTS_OF_STEP = ("policy_loss", "value_loss", "entropy", "loss", "grad_norm")


class Updater:
    """The network that is trained, and its optimiser.

    version: number of the policy, 1 before the first optimiser step and one more after each.
    skipped: optimiser steps that were not finite.
    """

    def __init__(
        self,
        config: Config,
        obs_space: gym.spaces.Dict,
        action_spec: ActionSpec,
        bfloat16: bool,
        device: torch.device,
    ) -> None:
        self._config = config.learner
        self._max_policy_lag = config.sampler.max_policy_lag
        self._action_spec = action_spec
        self._bfloat16 = bfloat16
        self._device = device
        self.model = build_model(config.model, obs_space, action_spec).to(device)
        self._parameters = list(self.model.parameters())
        self._optimizer = torch.optim.Adam(
            self._parameters,
            lr=self._config.learning_rate,
            betas=(self._config.adam_beta1, self._config.adam_beta2),
            eps=self._config.adam_eps,
            fused=True,
        )
        self.version = 1
        self._oldest_version = 0  # that is trained on
        self.skipped = SkippedUpdates(device)
        self._max_learning_rate = math.inf  # rollbacks lower it
        self._flat = torch.empty(num_weights(self.model), device=device)
        self._metrics: list[dict[str, Tensor]] = []
        self._last_step: dict[str, Tensor] = {}  # its metrics

    @property
    def learning_rate(self) -> float:
        return self._optimizer.param_groups[0]["lr"]

    def train_iteration(
        self,
        batch: Batch,
        share_done: float,
        after_step: Callable[[], None],
        goes_on: Callable[[], bool] = lambda: True,
    ) -> int:
        """Train `num_epochs` times on the batch; `after_step` is called after each optimiser step.

        share_done: of the run before this batch, from 0 to 1, for the schedule. goes_on: asked before each piece of
        work, none of them larger than an optimiser step; where it says no, the iteration ends there. Returns the number
        of optimiser steps, which may be 0 then.
        """
        # [T, B], as the data arrives. Rows that are not valid may bear the version of another policy.
        lag = torch.where(batch.valid, self.version - batch.policy_version, 0)
        mask = batch.valid & (lag <= self._max_policy_lag) & (batch.policy_version >= self._oldest_version)
        # Without the last row, which begins the next trajectory, and without what an absent agent does not see.
        self.model.update_normalizers({key: obs[:-1] for key, obs in batch.obs.items()}, batch.valid)
        if self._config.lr_schedule == "linear":
            self._set_learning_rate(schedules.linear(self._config.learning_rate, share_done))
        version_before = self.version
        for minibatch in self._minibatches(batch, mask, goes_on):
            if not goes_on():
                break
            self._step(minibatch)
            self.version += 1
            after_step()
        num_steps = self.version - version_before
        if self._config.lr_schedule == "kl_adaptive" and num_steps == self._config.steps_per_iteration:
            self._adapt_learning_rate()
        self._metrics.append(
            {
                "lag_mean": lag.sum() / batch.valid.sum().clamp(min=1),
                "lag_max": lag.max(),
                "masked_share": 1 - mask.float().mean(),
            }
        )
        return num_steps

    def pop_metrics(self) -> dict[str, float]:
        """Means of what was measured since the last call (`lag_max`: the maximum), and the learning rate.

        What was not finite is left out, and missing where nothing else was measured.
        """
        names = {name for metrics in self._metrics for name in metrics}
        out = {
            "learning_rate": self.learning_rate,
            "policy_version": float(self.version),
            "skipped_updates": float(self.skipped.total),
        }
        for name in sorted(names):
            values = torch.stack([metrics[name].float() for metrics in self._metrics if name in metrics]).cpu()
            values = values[values.isfinite()]
            if len(values):
                out[name] = float(values.max() if name == "lag_max" else values.mean())
        self._metrics.clear()
        return out

    def flat_weights(self) -> Tensor:
        """All weights and buffers [W] float32; overwritten by the next call."""
        write_flat(self.model, self._flat)
        return self._flat

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps of network and optimiser, and the state of the random numbers."""
        return tensors_of(self.model, self._optimizer)

    def state(self) -> dict[str, Any]:
        """The rest: numbers."""
        return {
            "version": self.version,
            "oldest_version": self._oldest_version,
            "learning_rate": self.learning_rate,
            "max_learning_rate": self._max_learning_rate,
            "skipped_updates": self.skipped.total,
        }

    def is_finite(self) -> bool:
        """Whether all that `tensors` gives is."""
        return are_finite(self.tensors())

    def not_finite(self) -> list[str]:
        """Which parts of the last step were not."""
        return [name for name in _PARTS_OF_STEP if not self._last_step[name].isfinite()]

    def load(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on where `tensors` and `state` were taken: of the same network."""
        load_tensors(self.model, self._optimizer, tensors)
        self.version = state["version"]
        self._oldest_version = state.get("oldest_version", 0)
        self.skipped = SkippedUpdates(self._device, state["skipped_updates"])
        self._max_learning_rate = state["max_learning_rate"]
        is_constant = self._config.lr_schedule == "constant"  # then it follows from the flags
        self._set_learning_rate(self._config.learning_rate if is_constant else state["learning_rate"])

    def copy(self, tensors: dict[str, Tensor]) -> None:
        """Go on with weights, statistics and moments of another policy, and never train on what came before."""
        random_numbers = torch.get_rng_state()
        self.load(tensors, {**self.state(), "version": self.version + 1, "oldest_version": self.version + 1})
        torch.set_rng_state(random_numbers)

    def set_hyperparameters(self, hyperparameters: Mapping[str, float]) -> None:
        """From now on: fields of LearnerConfig by name, the learning rate under its schedule."""
        self._config = dataclasses.replace(self._config, **cast("dict[str, Any]", dict(hyperparameters)))
        if "learning_rate" in hyperparameters:
            self._set_learning_rate(self._config.learning_rate)

    def take_over(self, diverged: Updater, learning_rate_factor: float) -> None:
        """Go on in the place of an updater that has diverged, at a learning rate that is lower for good."""
        self.version = diverged.version + 1  # its own may have been published with other weights
        self.skipped = SkippedUpdates(self._device, diverged.skipped.total)
        self._max_learning_rate = learning_rate_factor * min(self.learning_rate, diverged._max_learning_rate)
        self._set_learning_rate(self.learning_rate)

    def _set_learning_rate(self, learning_rate: float) -> None:
        self._optimizer.param_groups[0]["lr"] = min(learning_rate, self._max_learning_rate)

    def _adapt_learning_rate(self) -> None:
        """By how far the iteration has moved the policy, as its last epoch saw it: the first step sees none of it."""
        config = self._config
        kl = torch.stack([step["approx_kl"] for step in self._metrics[-config.num_batches_per_epoch :]]).mean()
        bounds = config.lr_adaptive_min, config.lr_adaptive_max
        rate = schedules.kl_adaptive(self.learning_rate, float(kl), config.lr_schedule_kl_threshold, *bounds)
        self._set_learning_rate(rate)

    def _minibatches(self, batch: Batch, mask: Tensor, goes_on: Callable[[], bool]) -> Iterator[Minibatch]:
        """Of all epochs; none where `goes_on` says no meanwhile."""
        config, whole = self._config, Minibatch(batch, mask, batch.log_prob)
        count, num_epochs = config.num_batches_per_epoch, config.num_epochs
        if config.steps_per_iteration == 1:
            yield whole
            return
        is_decoupled = config.decoupled_clip and config.with_ppo_clip
        with_steps = config.shuffle_steps and not self.model.state_size
        targets = None
        if is_decoupled or with_steps:
            before = self._evaluate_before(batch, goes_on)
            if before is None:
                return
            log_prob, value = before
            if is_decoupled:
                whole = whole._replace(proximal_log_prob=log_prob)
            if with_steps:
                targets = make_targets(config, batch, log_prob, value)
        for _ in range(num_epochs):
            yield from cut_into_steps(whole, targets, count) if targets else cut_into_trajectories(whole, count)

    def _evaluate_before(self, batch: Batch, goes_on: Callable[[], bool]) -> tuple[Tensor, Tensor] | None:
        """Log-probabilities [T, B] and values [T+1, B] in the scale of returns, before the first step of an iteration.

        In parts as large as a step's; None where `goes_on` says no before one of them.
        """
        columns = torch.arange(batch.num_trajectories, device=self._device)
        log_probs, values = [], []
        with torch.no_grad():
            for some in columns.chunk(self._config.num_batches_per_epoch):
                if not goes_on():
                    return None
                part = batch.columns(some)
                policy, value = self._evaluate(part)
                log_probs.append(policy.log_prob(part.discrete, part.continuous))
                values.append(self.model.value_norm.denormalize(value))
        return torch.cat(log_probs, dim=1), torch.cat(values, dim=1)

    def _evaluate(self, batch: Batch) -> tuple[ActionDistribution, Tensor]:
        """The policy of [T, B] and the values [T+1, B] in the critic's scale, float32."""
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bfloat16):
            out = self.model.unroll(batch.obs, batch.state, batch.first)
        return ActionDistribution(self._action_spec, out.params), out.value

    def _step(self, minibatch: Minibatch) -> None:
        """One optimiser step."""
        self._optimizer.zero_grad()
        result, target = self._loss(minibatch)
        result.loss.backward()
        max_norm = self._config.max_grad_norm or float("inf")
        grad_norm = torch.nn.utils.clip_grad_norm_(self._parameters, max_norm)
        loss = result.loss.detach()
        is_finite = loss.isfinite() & grad_norm.isfinite()
        is_skipped = (~is_finite).float()
        # The fused kernel reads it on the device, and does nothing where it is 1: torch.amp.GradScaler's protocol.
        self._optimizer.found_inf = is_skipped  # type: ignore[attr-defined]
        self._optimizer.step()
        self.skipped.count(is_skipped)
        self.model.update_value_norm(target, minibatch.mask & is_finite)
        self._last_step = {**result.metrics._asdict(), "loss": loss, "grad_norm": grad_norm}
        self._metrics.append(self._last_step)

    def _loss(self, minibatch: Minibatch) -> tuple[PPOLoss, Tensor]:
        """The loss, and the value targets [T, B] in the scale of returns."""
        config, value_norm = self._config, self.model.value_norm
        batch, mask, proximal_log_prob, targets = minibatch
        policy, value = self._evaluate(batch)
        log_prob = policy.log_prob(batch.discrete, batch.continuous)  # [T, B]
        if targets is None:
            targets = make_targets(config, batch, log_prob.detach(), value_norm.denormalize(value.detach()))
        advantage = targets.advantage
        if config.with_vtrace and not config.with_ppo_clip:
            advantage = advantage * (log_prob.detach() - batch.log_prob).exp().clamp(max=config.vtrace_rho)
        loss = ppo_loss(
            log_prob,
            proximal_log_prob,
            batch.log_prob,
            policy.entropy(),
            advantage,
            value[:-1],
            value_norm.normalize(batch.value),
            value_norm.normalize(targets.value),
            mask,
            policy.has_choice() if ACTION_MASK in batch.obs else None,
            with_ppo_clip=config.with_ppo_clip,
            clip_ratio=config.ppo_clip_ratio,
            rho_bar=config.vtrace_rho,
            clip_value=config.ppo_clip_value,
            value_loss_coeff=config.value_loss_coeff,
            entropy_coeff=config.exploration_loss_coeff,
            normalize_advantages=config.normalize_advantages,
        )
        return loss, targets.value
