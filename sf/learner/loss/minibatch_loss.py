"""The loss of a minibatch, from what the network gives for it: the one place where flags become a loss."""

from __future__ import annotations

import torch
from torch import Tensor

from sf.config import LearnerConfig
from sf.envs.spaces.actions import ACTION_MASK
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Minibatch
from sf.learner.demonstrations.field import DEMONSTRATED
from sf.learner.loss.numbers import LossNumbers
from sf.learner.loss.ppo import PPOLoss, ppo_loss
from sf.learner.loss.targets import make_targets
from sf.learner.loss.terms import table
from sf.learner.loss.terms.term import LossSettings
from sf.model.distributions import ActionDistribution
from sf.model.task_returns import ValueNorm, advantage_scale, scale_of
from sf.ranks.ranks import ALONE, Ranks


def minibatch_loss(
    config: LearnerConfig,
    minibatch: Minibatch,
    policy: ActionDistribution,
    value: Tensor,
    value_norm: ValueNorm,
    ranks: Ranks = ALONE,
    numbers: LossNumbers | None = None,
) -> tuple[PPOLoss, Tensor]:
    """Returns the loss of this rank, see `ppo_loss`, and the value targets [T, B] in the scale of returns.

    policy: of [T, B]; value: [T+1, B] in the critic's scale. Both carry gradients. Where the minibatch has no targets,
    they are made from this policy and these values: no newer ones exist. numbers: in the place of those of the
    configuration.
    """
    numbers = LossNumbers.of(config) if numbers is None else numbers
    log_prob = policy.log_prob(minibatch.batch.discrete, minibatch.batch.continuous)  # [T, B]
    minibatch = minibatch._replace(
        batch=as_own(minibatch.batch, log_prob),
        proximal_log_prob=_own(minibatch.batch, log_prob, minibatch.proximal_log_prob),
    )
    batch = minibatch.batch
    scale = scale_of(value_norm, {key: obs[:-1] for key, obs in batch.obs.items()})  # of the T rows of decisions
    targets, of_advantage = minibatch.targets, advantage_scale(value_norm, batch.obs)
    if targets is None:
        returns = scale_of(value_norm, batch.obs).denormalize(value.detach())
        together = minibatch.teammates, of_advantage
        targets = make_targets(config, batch, log_prob.detach(), returns, *together, numbers)
    # A network without statistics of returns predicts 0 throughout: nothing to clip around.
    behaviour_value = torch.where(batch.value == 0, value[:-1].detach(), scale.normalize(batch.value))
    priorities = minibatch.priorities
    loss = ppo_loss(
        log_prob,
        minibatch.proximal_log_prob,
        batch.log_prob,
        policy.entropy(),
        targets.advantage,
        value[:-1],
        behaviour_value,
        scale.normalize(targets.value),
        targets.value if of_advantage is None else targets.value * of_advantage.to(value.dtype),
        minibatch.mask,
        policy.has_choice() if ACTION_MASK in batch.obs else None,
        zero_return=scale.normalize(torch.zeros((), device=value.device)),
        advantage_moments=minibatch.advantage_moments,
        sample_weight=None if priorities is None else priorities.weight.expand_as(minibatch.mask),
        settings=loss_settings(config, numbers),
        coefficients=numbers.coefficients,
        terms=table.terms_of(config),
        fields=batch.fields,
        policy=policy,
        ranks=ranks,
    )
    return loss, targets.value


def as_own(batch: Batch, log_prob: Tensor) -> Batch:
    """Returns the batch in which demonstrated actions have the log-probabilities [T, B] of the policy: those of the
    demonstrator are not known."""
    return batch.replaced(log_prob=_own(batch, log_prob, batch.log_prob)) if DEMONSTRATED in batch.fields else batch


def _own(batch: Batch, log_prob: Tensor, behaviour_log_prob: Tensor) -> Tensor:
    if DEMONSTRATED not in batch.fields:
        return behaviour_log_prob
    return torch.where(batch.fields[DEMONSTRATED], log_prob.detach(), behaviour_log_prob)


def loss_settings(config: LearnerConfig, numbers: LossNumbers) -> LossSettings:
    return LossSettings(
        with_ppo_clip=config.with_ppo_clip,
        clip_ratio=numbers.ppo_clip_ratio,
        rho_bar=config.vtrace_rho,
        with_importance_weight=config.with_vtrace,
        clip_value=config.ppo_clip_value,
        normalize_advantages=config.normalize_advantages,
    )
