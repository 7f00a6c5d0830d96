"""Takes an optimiser step: forward pass, loss, backward pass and update, by a program or by PyTorch's operations.

A step whose loss or gradients are not finite changes nothing: weights, moments and statistics stay as they were. A
step without a sample changes nothing either, though Adam's momentum would move the weights.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from sf.config import LearnerConfig
from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Cut, Minibatch
from sf.learner.compiled.faster_step import FasterStep
from sf.learner.gradients.worker import Inputs
from sf.learner.gradients.workers import GradientWorkers
from sf.learner.loss.minibatch_loss import minibatch_loss
from sf.learner.loss.numbers import LossNumbers
from sf.learner.loss.ppo import PPOLoss
from sf.learner.optimizer.optimizer import Optimizer
from sf.model.actor_critic import UnrollOutput
from sf.model.distributions import ActionDistribution
from sf.model.task_returns import update_value_norm
from sf.ranks.ranks import Ranks


class OptimizerStep:
    """Takes the optimiser steps of one network."""

    def __init__(
        self,
        model: Any,
        optimizer: Optimizer,
        action_spec: ActionSpec,
        bfloat16: bool,
        device: torch.device,
        gradient_workers: GradientWorkers | None,
        ranks: Ranks,
        faster_step: FasterStep | None,
    ) -> None:
        """gradient_workers: compute a part of each minibatch. ranks: take each step together. faster_step: takes the
        steps that it can."""
        assert ranks.size == 1 or (gradient_workers is None and faster_step is None)
        self._model = model
        self._parameters = list(model.parameters())
        self._joined = ranks.joined(_Unroll(model))
        self._optimizer = optimizer
        self._action_spec = action_spec
        self._bfloat16 = bfloat16
        self._device = device
        self._gradient_workers = gradient_workers
        self._ranks = ranks
        self._faster_step = faster_step
        if faster_step is not None:
            faster_step.serve(model, optimizer)

    @property
    def workers(self) -> GradientWorkers | None:
        """Returns the gradient workers if they may be of use: a compiled step leaves nothing for them."""
        return self._gradient_workers if self.helper is self._gradient_workers else None

    @property
    def helper(self) -> GradientWorkers | FasterStep | None:
        """Returns what uses idle cores at present, and decides how many by what is measured."""
        faster = self._faster_step
        return faster if faster is not None and faster.is_at_work else self._gradient_workers

    def begin_iteration(self) -> None:
        """Call this before the steps of an iteration."""
        if self._faster_step is not None:
            self._faster_step.look()

    def take(self, part: Cut, config: LearnerConfig, config_now: LearnerConfig) -> dict[str, Tensor]:
        """Take one step. Returns its metrics, 0-dim, and `is_skipped`, 1 or 0.

        config: of the run. config_now: the same with what the run's progress has changed.
        """
        faster = self._faster_step
        if faster is not None and faster.takes(part, config):
            # It compares its steps with `_take_own`, and may record one.
            numbers = LossNumbers.of(config_now)
            return faster.step(part, numbers, lambda minibatch, given: self._take_own(minibatch, config_now, given))
        return self._take_own(part.taken(), config_now)

    def evaluate(self, batch: Batch) -> tuple[ActionDistribution, Tensor]:
        """Returns the policy of [T, B] and the values [T+1, B] in the critic's scale, float32."""
        out = self._unroll_in_parts(Inputs(batch.obs, batch.state, batch.first))
        return ActionDistribution(self._action_spec, out.params), out.value

    def _take_own(
        self, minibatch: Minibatch, config: LearnerConfig, numbers: LossNumbers | None = None
    ) -> dict[str, Tensor]:
        """Take one step with PyTorch's operations. What it does beyond network and loss, `training_step` does, too.

        numbers: in the place of those of `config`.
        """
        self._optimizer.zero_grad()
        result, target = self._loss(minibatch, config, numbers)
        grad_norm = self._make_gradients(result.loss, config.max_grad_norm)
        loss = result.of_all_ranks
        is_finite = loss.isfinite() & grad_norm.isfinite()
        is_skipped = (~is_finite).float()
        has_samples = result.metrics["num_samples"] > 0
        self._optimizer.step((~(is_finite & has_samples)).float())
        update_value_norm(self._model, target, minibatch.mask & is_finite, minibatch.batch.obs)
        return {**result.metrics, "loss": loss, "grad_norm": grad_norm, "is_skipped": is_skipped}

    def _loss(self, minibatch: Minibatch, config: LearnerConfig, numbers: LossNumbers | None) -> tuple[PPOLoss, Tensor]:
        """Returns the loss, and the value targets [T, B] in the scale of returns."""
        policy, value = self.evaluate(minibatch.batch)
        return minibatch_loss(config, minibatch, policy, value, self._model.value_norm, self._ranks, numbers)

    def _make_gradients(self, loss: Tensor, max_norm: float) -> Tensor:
        """Compute all gradients, and clip them unless max_norm is 0. Returns their global norm before that, 0-dim."""
        (loss * self._ranks.size).backward()  # the mean of the ranks' gradients is then the sum of those of their parts
        if self.workers is not None:
            for lost in self.workers.add_gradients(self._parameters):
                torch.autograd.backward(list(self._unroll(lost.inputs)), list(lost.output_gradients))
        return torch.nn.utils.clip_grad_norm_(self._parameters, max_norm or float("inf"))

    def _unroll_in_parts(self, inputs: Inputs) -> UnrollOutput:
        """Run the network with the help of the gradient workers, and without them where one has died."""
        workers = self.workers
        if workers is None:
            return self._unroll(inputs)
        parts = workers.begin(self._model, inputs)
        own = self._unroll(parts[0])  # while they compute theirs
        pairs = zip(parts[1:], workers.outputs(), strict=True)
        return workers.joined([own, *(self._unroll(part) if output is None else output for part, output in pairs)])

    def _unroll(self, inputs: Inputs) -> UnrollOutput:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bfloat16):
            network = self._joined if torch.is_grad_enabled() else self._model.unroll
            return cast("UnrollOutput", network(*inputs))


class _Unroll(nn.Module):
    """Makes the `unroll` of a network the forward pass of a module, which ranks can join."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self._network = network

    def forward(self, *inputs: Any) -> UnrollOutput:
        return cast("UnrollOutput", self._network.unroll(*inputs))
