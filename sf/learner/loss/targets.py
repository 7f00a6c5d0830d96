"""Value targets and advantages by V-trace or GAE, and the advantages as the loss of the policy takes them."""

from __future__ import annotations

import torch
from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Moments, Targets
from sf.learner.intrinsic.field import ADVANTAGE
from sf.learner.loss.gae import gae
from sf.learner.loss.masks import MaskedMean, has_outcome
from sf.learner.loss.numbers import LossNumbers
from sf.learner.loss.vtrace import vtrace
from sf.ranks.ranks import ALONE, Ranks

_ROUNDING = 1e-5  # of the size of returns: what many sums in float32 may be off by
_LEAST = 1e-30  # where all returns are 0


def make_targets(
    config: LearnerConfig,
    batch: Batch,
    log_prob: Tensor,
    value: Tensor,
    teammates: Tensor | None = None,
    advantage_scale: Tensor | None = None,
    numbers: LossNumbers | None = None,
) -> Targets:
    """Targets by a policy with log-probabilities [T, B] and values [T+1, B] in the scale of returns.

    teammates: [A, A], 1 where two agents of an environment share a value; None: each has a value of its own. A step is
    then as probable as the actions of all of them, and ends nothing as long as one of them plays on. advantage_scale:
    [T, B], by which advantages are multiplied; None: they are in the scale of returns. numbers: in the place of those
    of the configuration. A batch with intrinsic advantages adds them, in the scale of the others.
    """
    numbers = LossNumbers.of(config) if numbers is None else numbers
    targets = _in_the_scale_of_returns(config, batch, log_prob, value, teammates, numbers)
    if advantage_scale is not None:
        targets = targets._replace(advantage=(targets.advantage * advantage_scale).to(value.dtype))
    if ADVANTAGE in batch.fields:
        added = numbers.intrinsic_coeff * batch.intrinsic_advantage
        targets = targets._replace(advantage=(targets.advantage + added).to(value.dtype))
    return targets


def _in_the_scale_of_returns(
    config: LearnerConfig,
    batch: Batch,
    log_prob: Tensor,
    value: Tensor,
    teammates: Tensor | None,
    numbers: LossNumbers,
) -> Targets:
    gamma, lambda_ = numbers.gamma, numbers.gae_lambda
    reward = batch.reward * numbers.reward_scale
    if config.reward_clip:
        reward = reward.clamp(-config.reward_clip, config.reward_clip)
    discount = gamma * (~batch.terminated).float()
    if teammates is not None:
        plays_on = _of_teams((batch.valid & ~batch.terminated).float(), teammates) > 0
        discount = gamma * plays_on.float()
    acts, valid = batch.acts(), batch.valid
    if acts is not None:
        valid = valid & (~acts[:-1] | has_outcome(acts, batch.terminated, valid))
    if not config.with_vtrace:
        return Targets(*gae(reward, discount, value, valid, acts, lambda_=lambda_))
    log_rho = log_prob - batch.log_prob
    if teammates is not None:
        log_rho = _of_teams(torch.where(batch.valid, log_rho, 0.0), teammates)
    estimate = vtrace(
        log_rho,
        reward,
        discount,
        value,
        valid,
        acts,
        rho_bar=config.vtrace_rho,
        c_bar=config.vtrace_c,
        lambda_=lambda_,
    )
    return Targets(*estimate)


def _of_teams(numbers: Tensor, teammates: Tensor) -> Tensor:
    """Returns the sums over the team of each agent [T, B] of numbers [T, B]."""
    return (numbers.unflatten(1, (-1, len(teammates))) @ teammates).flatten(1)


def moments(advantage: Tensor, returns: Tensor, mean: MaskedMean, ranks: Ranks = ALONE) -> Moments:
    """Mean and standard deviation of advantages [T, B], over the samples of `mean`, of all ranks.

    returns: [T, B], the value targets, in the same scale as the advantages.
    """
    centre, squared_return = ranks.totals(mean(advantage), mean(returns.square()))
    (variance,) = ranks.totals(mean((advantage - centre).square()))
    return Moments(centre, variance.sqrt(), _ROUNDING * squared_return.sqrt())


def normalized(advantage: Tensor, of: Moments) -> Tensor:
    """Shifts and scales advantages to mean 0 and standard deviation 1. Those that differ by their rounding alone
    become almost 0."""
    return (advantage - of.mean) / (of.stddev + of.rounding).clamp(min=_LEAST)


def corrected(advantage: Tensor, log_prob: Tensor, behaviour_log_prob: Tensor, rho_bar: float) -> Tensor:
    """Advantages [T, B] times the truncated importance weight of V-trace's policy gradient (Espeholt et al. 2018,
    section 4.2): min(rho_bar, exp(log_prob - behaviour_log_prob)). No gradients go through the weight."""
    return advantage * (log_prob.detach() - behaviour_log_prob).exp().clamp(max=rho_bar)
