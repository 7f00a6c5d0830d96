"""What is computed once for all optimiser steps of an iteration, from one pass of the network before the first."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.batches.minibatches import Minibatch, Moments, Targets
from sf.learner.batches.priorities import priorities
from sf.learner.loss.masks import MaskedMean, share_out
from sf.learner.loss.minibatch_loss import as_own, loss_settings
from sf.learner.loss.numbers import LossNumbers
from sf.learner.loss.targets import corrected, make_targets, moments
from sf.ranks.ranks import ALONE, Ranks


class Evaluation(NamedTuple):
    """What the network gives for an iteration before its first step."""

    log_prob: Tensor  # [T, B]
    value: Tensor  # [T+1, B], in the scale of returns
    has_choice: Tensor | None  # [T, B] bool, where more than one action is possible; None: everywhere


def needs_evaluation(config: LearnerConfig, has_memory: bool) -> bool:
    """Whether steps depend on how the network was before the first. has_memory: of the network."""
    return _is_decoupled(config) or _needs_targets(config, has_memory)


def prepare(
    config: LearnerConfig,
    whole: Minibatch,
    before: Evaluation,
    has_memory: bool,
    ranks: Ranks = ALONE,
    advantage_scale: Tensor | None = None,
) -> Minibatch:
    """The iteration `whole` with all that its steps share.

    With `decoupled_clip` that is the proximal policy, with `shuffle_steps` the targets, with
    `normalize_advantages_over iteration` the mean and standard deviation of the advantages, with `trajectory_priority`
    the priorities. A network with memory needs whole trajectories, whose steps make newer targets of their own.
    advantage_scale: as for `make_targets`.
    """
    if _is_decoupled(config):
        whole = whole._replace(proximal_log_prob=before.log_prob)
    if not _needs_targets(config, has_memory):
        return whole
    batch = as_own(whole.batch, before.log_prob)
    targets = make_targets(config, batch, before.log_prob, before.value, whole.teammates, advantage_scale)
    if _is_of_steps(config, has_memory):
        whole = whole._replace(targets=targets)
    if is_normalized_at_once(config):
        returns = targets.value if advantage_scale is None else targets.value * advantage_scale.to(targets.value.dtype)
        of_advantages = _moments(config, whole, before, targets._replace(value=returns), ranks)
        whole = whole._replace(advantage_moments=of_advantages)
    if config.trajectory_priority:
        alpha, beta = config.trajectory_priority, config.trajectory_priority_beta
        whole = whole._replace(priorities=priorities(targets.advantage, whole.mask, alpha=alpha, beta=beta))
    return whole


def _is_decoupled(config: LearnerConfig) -> bool:
    """Where nothing is clipped, `kl_adaptive` measures the KL divergence from the proximal policy all the same."""
    return config.decoupled_clip and (config.with_ppo_clip or config.lr_schedule == "kl_adaptive")


def _needs_targets(config: LearnerConfig, has_memory: bool) -> bool:
    is_prioritized = config.trajectory_priority > 0
    return _is_of_steps(config, has_memory) or is_normalized_at_once(config) or is_prioritized


def _is_of_steps(config: LearnerConfig, has_memory: bool) -> bool:
    return config.shuffle_steps and not has_memory


def is_normalized_at_once(config: LearnerConfig) -> bool:
    """Whether all minibatches of an iteration normalise advantages by the same moments."""
    return config.normalize_advantages and config.normalize_advantages_over == "iteration"


def _moments(config: LearnerConfig, whole: Minibatch, before: Evaluation, targets: Targets, ranks: Ranks) -> Moments:
    """Returns the moments of the advantages as the loss of a minibatch would take them now, over the samples that it
    would count. The value targets are in the scale of the advantages."""
    settings, advantage = loss_settings(config, LossNumbers.of(config)), targets.advantage
    if settings.corrects_advantages:
        advantage = corrected(advantage, before.log_prob, whole.batch.log_prob, settings.rho_bar)
    chosen = whole.mask if before.has_choice is None else whole.mask & before.has_choice
    mean = MaskedMean(chosen, advantage.dtype)
    share_out(ranks, [mean])
    return moments(advantage, targets.value, mean, ranks)
