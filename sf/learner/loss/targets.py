"""What a batch is trained towards: value targets and advantages, by V-trace or GAE."""

from __future__ import annotations

from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Targets
from sf.learner.loss.gae import gae
from sf.learner.loss.vtrace import vtrace
from sf.learner.loss.waiting import has_outcome


def make_targets(config: LearnerConfig, batch: Batch, log_prob: Tensor, value: Tensor) -> Targets:
    """Targets by a policy with log-probabilities [T, B] and values [T+1, B] in the scale of returns."""
    reward = batch.reward * config.reward_scale
    if config.reward_clip:
        reward = reward.clamp(-config.reward_clip, config.reward_clip)
    discount = config.gamma * (~batch.terminated).float()
    acts, valid = batch.acts(), batch.valid
    if acts is not None:
        valid = valid & (~acts[:-1] | has_outcome(acts, batch.terminated, valid))
    if not config.with_vtrace:
        return Targets(*gae(reward, discount, value, valid, acts, lambda_=config.gae_lambda))
    estimate = vtrace(
        log_prob - batch.log_prob,
        reward,
        discount,
        value,
        valid,
        acts,
        rho_bar=config.vtrace_rho,
        c_bar=config.vtrace_c,
        lambda_=config.gae_lambda,
    )
    return Targets(*estimate)
