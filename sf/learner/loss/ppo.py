"""The loss of a minibatch: policy (PPO's clipped surrogate or the plain gradient), value and entropy."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sf.learner.batches.minibatches import Moments
from sf.learner.loss.advantages import corrected, moments, normalized
from sf.learner.loss.masked_mean import MaskedMean, share_out
from sf.ranks.ranks import ALONE, Ranks

# exp(20) is 5e8: far beyond any ratio that still teaches something, and far from overflow.
_MAX_LOG_RATIO = 20.0
_LEAST_VARIATION = 0.02  # of value targets: their standard deviation as a share of their size


class PPOSettings(NamedTuple):
    """What does not change from one sample to the next."""

    with_ppo_clip: bool  # PPO's surrogate; else the plain gradient
    clip_ratio: float
    rho_bar: float  # truncation of importance weights
    with_importance_weight: bool  # of the plain gradient; V-trace needs it, GAE is without
    clip_value: float  # 0 turns the clipping of the value loss off
    value_loss_coeff: float
    entropy_coeff: float | Tensor  # 0-dim
    normalize_advantages: bool

    @property
    def corrects_advantages(self) -> bool:
        """PPO's surrogate has the ratio of the policies in it, the plain gradient has not."""
        return self.with_importance_weight and not self.with_ppo_clip


class PPOMetrics(NamedTuple):
    """0-dim, detached, on the device of the loss: means over the samples of the mask, 0 if there are none.

    Metrics of the policy average only the samples with more than one possible action.
    """

    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor  # of the target from the proximal policy: mean of (ratio - 1) - log ratio, never negative
    ratio_mean: Tensor  # of target to behaviour policy
    clip_fraction: Tensor  # share of samples whose ratio of target to proximal policy is outside the clip range
    effective_sample_size: Tensor  # (sum x)^2 / sum x^2, x = target / behaviour, as a share of samples: 1 on-policy
    value_clip_fraction: Tensor  # share of samples whose value moved further than clip_value
    explained_variance: Tensor  # 1 - Var(target - value) / Var(target); NaN where the targets barely vary
    advantage_mean: Tensor  # before normalisation
    advantage_stddev: Tensor
    num_samples: Tensor  # in the mask
    num_choices: Tensor  # of these, with more than one possible action


class PPOLoss(NamedTuple):
    loss: Tensor  # 0-dim, carries the gradients; of several ranks, the part of this one
    metrics: PPOMetrics
    of_all_ranks: Tensor  # 0-dim, detached: the sum of the parts


class _Parts(NamedTuple):
    """0-dim, of this rank: what the metrics are made of. Those of all ranks are their sums.

    target: the value target less that of a return of 0; residual: target - value.
    """

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor
    ratio: Tensor  # of target to behaviour policy
    squared_ratio: Tensor
    clip_fraction: Tensor
    value_clip_fraction: Tensor
    target: Tensor
    squared_target: Tensor
    residual: Tensor
    squared_residual: Tensor


def ppo_loss(
    log_prob: Tensor,
    proximal_log_prob: Tensor,
    behaviour_log_prob: Tensor,
    entropy: Tensor,
    advantage: Tensor,
    value: Tensor,
    behaviour_value: Tensor,
    value_target: Tensor,
    returns: Tensor,
    mask: Tensor,
    has_choice: Tensor | None = None,
    *,
    zero_return: Tensor | float = 0.0,
    advantage_moments: Moments | None = None,
    sample_weight: Tensor | None = None,
    settings: PPOSettings,
    ranks: Ranks = ALONE,
) -> PPOLoss:
    """The loss (Schulman et al. 2017) over the samples for which `mask` holds; the others may be even NaN.

        ratio  = exp(log_prob - proximal_log_prob)
        weight = min(max(1, rho_bar), exp(proximal_log_prob - behaviour_log_prob))
        policy = -mean weight min(ratio A, clip(ratio, 1 / (1 + clip_ratio), 1 + clip_ratio) A)  with_ppo_clip
                 -mean min(rho_bar, exp(log_prob - behaviour_log_prob)) log_prob A    with_importance_weight
                 -mean log_prob A                                                     otherwise
        value  = mean max((v - target)^2, (clip(v, v_b - clip_value, v_b + clip_value) - target)^2)
        loss   = policy + value_loss_coeff value - entropy_coeff mean entropy

    The proximal policy is the one that the update stays close to. PPO's is the behaviour policy, and then the weight
    is 1. A newer one decouples the size of an update from the age of the data (Hilton et al. 2022, section 3). The
    ratio's range is symmetric in its logarithm. Samples without a choice have a value loss alone. A mask that holds
    nowhere gives loss and gradients of 0.

    Args:
        log_prob, entropy: [T, B], of the target policy; they carry gradients.
        proximal_log_prob: [T, B], of the policy that the ratio is clipped around.
        behaviour_log_prob: [T, B], of the policy that acted.
        advantage: [T, B], without an importance weight. Neither it nor any weight carries gradients.
        value: [T, B], carries gradients; value, behaviour_value and value_target share one scale.
        behaviour_value: [T, B], what the network that acted predicted.
        value_target: [T, B].
        returns: [T, B], the value targets in the scale of the advantages.
        mask: [T, B] bool: valid, and not too old.
        has_choice: [T, B] bool, where more than one action was possible; None: everywhere.
        zero_return: where a return of 0 lies in the scale of the values.
        advantage_moments: to normalise advantages by; None: those of these samples.
        sample_weight: [T, B], above 0, the weight of each sample in all means, also those of the metrics. The loss is
            multiplied by the mean of the weights in the mask divided by their maximum. So its gradient is that of
            weights which are divided by their maximum, and only make updates smaller (Schaul et al. 2016, section 3.4).
            None: all samples count alike.
        ranks: means are those over the samples of all ranks, and so are the metrics. The loss is the part of this rank:
            the loss of all samples, and its gradient, are the sums over all ranks.
    """
    assert log_prob.ndim == 2, log_prob.shape
    others = (proximal_log_prob, behaviour_log_prob, entropy, advantage, value, behaviour_value, value_target, returns)
    for tensor in (*others, mask):
        assert tensor.shape == log_prob.shape, (tensor.shape, log_prob.shape)
    # Before anything else: 0 x NaN would be NaN, in the gradients too.
    log_prob, proximal_log_prob, behaviour_log_prob, entropy, advantage, *of_critic = (
        torch.where(mask, tensor, 0.0) for tensor in (log_prob, *others)
    )
    value, behaviour_value, value_target, returns = of_critic
    log_ratio = _log_ratio(log_prob, proximal_log_prob)
    ratio = log_ratio.exp()
    weight = _log_ratio(proximal_log_prob, behaviour_log_prob).exp().clamp(max=max(1.0, settings.rho_bar))
    chosen = mask if has_choice is None else mask & has_choice
    mean, mean_of_chosen = (MaskedMean(some, log_prob.dtype, sample_weight) for some in (mask, chosen))
    share_out(ranks, [mean, mean_of_chosen])

    advantage = advantage.detach()
    if settings.corrects_advantages:
        advantage = corrected(advantage, log_prob, behaviour_log_prob, settings.rho_bar)
    own_moments = moments(advantage, returns, mean_of_chosen, ranks)
    if settings.normalize_advantages:
        advantage = normalized(advantage, own_moments if advantage_moments is None else advantage_moments)

    low, high = 1 / (1 + settings.clip_ratio), 1 + settings.clip_ratio
    if settings.with_ppo_clip:
        policy_loss = -mean_of_chosen(weight * torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage))
    else:
        policy_loss = -mean_of_chosen(log_prob * advantage)

    squared_error = (value - value_target).square()
    move, clip_value = value - behaviour_value, settings.clip_value
    if clip_value > 0:
        clipped = behaviour_value + move.clamp(-clip_value, clip_value)
        squared_error = torch.maximum(squared_error, (clipped - value_target).square())
    value_loss = mean(squared_error)

    entropy_mean = mean_of_chosen(entropy)
    loss = policy_loss + settings.value_loss_coeff * value_loss - settings.entropy_coeff * entropy_mean
    if sample_weight is not None:
        loss = loss * _mean_by_max(sample_weight, mask)

    with torch.no_grad():
        behaviour_ratio = _log_ratio(log_prob, behaviour_log_prob).exp()
        from_zero, residual = (x.double() for x in (value_target - zero_return, value_target - value))
        parts = _Parts(
            loss=loss,
            policy_loss=policy_loss,
            value_loss=value_loss,
            entropy=entropy_mean,
            approx_kl=mean_of_chosen(log_ratio.expm1() - log_ratio),  # ratio - 1 loses the digits of a small update
            ratio=mean_of_chosen(behaviour_ratio),
            squared_ratio=mean_of_chosen(behaviour_ratio.square()),
            clip_fraction=mean_of_chosen(((ratio < low) | (ratio > high)).to(ratio.dtype)),
            value_clip_fraction=mean((move.abs() > clip_value).to(ratio.dtype)) if clip_value > 0 else mean(ratio * 0),
            target=mean(from_zero),
            squared_target=mean(from_zero.square()),
            residual=mean(residual),
            squared_residual=mean(residual.square()),
        )
        of_all = _Parts(*ranks.totals(*parts))
        target_variance = of_all.squared_target - of_all.target.square()
        residual_variance = of_all.squared_residual - of_all.residual.square()
        metrics = PPOMetrics(
            policy_loss=of_all.policy_loss,
            value_loss=of_all.value_loss,
            entropy=of_all.entropy,
            approx_kl=of_all.approx_kl,
            ratio_mean=of_all.ratio,
            clip_fraction=of_all.clip_fraction,
            effective_sample_size=of_all.ratio.square() / of_all.squared_ratio.clamp(min=1e-8),
            value_clip_fraction=of_all.value_clip_fraction,
            explained_variance=torch.where(
                target_variance > _LEAST_VARIATION**2 * of_all.squared_target,
                1 - residual_variance / target_variance.clamp(min=1e-30),
                torch.nan,
            ).to(ratio.dtype),
            advantage_mean=own_moments.mean,
            advantage_stddev=own_moments.stddev,
            num_samples=mean.num_samples,
            num_choices=mean_of_chosen.num_samples,
        )
    return PPOLoss(loss, PPOMetrics(*(metric.detach() for metric in metrics)), of_all.loss.detach())


def _mean_by_max(weight: Tensor, mask: Tensor) -> Tensor:
    """Of the weights [T, B] in the mask."""
    weight = torch.where(mask, weight, 0.0)
    return weight.sum() / (mask.sum() * weight.max()).clamp(min=1e-30)


def _log_ratio(log_prob: Tensor, other: Tensor) -> Tensor:
    return (log_prob - other).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
