"""The loss of a minibatch: the sum of its terms over the samples that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.batches.minibatches import Moments
from sf.learner.loss.masks import MaskedMean, share_out
from sf.learner.loss.targets import corrected, moments, normalized
from sf.learner.loss.terms.table import terms_of
from sf.learner.loss.terms.term import LossSettings, LossTerm, Samples
from sf.model.distributions import ActionDistribution
from sf.ranks.ranks import ALONE, Ranks

_BY_DEFAULT = terms_of(LearnerConfig())


class PPOLoss(NamedTuple):
    """The loss, and the metrics of the terms and `sf.learner.loss.terms.table.OF_SAMPLES` by name.

    The metrics are 0-dim, detached, on the device of the loss: means over the samples of the mask, 0 if there are none.
    Metrics of the policy average only the samples with more than one possible action.
    """

    loss: Tensor  # 0-dim, carries the gradients; of several ranks, the part of this one
    metrics: dict[str, Tensor]
    of_all_ranks: Tensor  # 0-dim, detached: the sum of the parts


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
    settings: LossSettings,
    coefficients: Sequence[float] | Tensor,
    terms: Sequence[LossTerm] = _BY_DEFAULT,
    fields: Mapping[str, Tensor] | None = None,
    policy: ActionDistribution | None = None,
    ranks: Ranks = ALONE,
) -> PPOLoss:
    """Returns the loss (Schulman et al. 2017) over the samples for which `mask` holds; the others may be even NaN.

    It is the sum of its `terms`, each times its coefficient, and by default

        ratio  = exp(log_prob - proximal_log_prob)
        weight = min(max(1, rho_bar), exp(proximal_log_prob - behaviour_log_prob))
        policy = -mean weight min(ratio A, clip(ratio, 1 / (1 + clip_ratio), 1 + clip_ratio) A)  with_ppo_clip
                 -mean min(rho_bar, exp(log_prob - behaviour_log_prob)) log_prob A    with_importance_weight
                 -mean log_prob A                                                     otherwise
        value  = mean max((v - target)^2, (clip(v, v_b - clip_value, v_b + clip_value) - target)^2)
        loss   = policy_loss_coeff policy + value_loss_coeff value - exploration_loss_coeff mean entropy

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
        terms: of the loss, see `sf.learner.loss.terms.table`.
        coefficients: of the terms, in their order: numbers, or a tensor [number of terms].
        fields: [T, B, ...], the fields of a step that the terms name, by name.
        policy: the distributions of [T, B] actions, for terms that need more than these numbers.
        ranks: means are those over the samples of all ranks, and so are the metrics. The loss is the part of this rank:
            the loss of all samples, and its gradient, are the sums over all ranks.
    """
    assert log_prob.ndim == 2, log_prob.shape
    others = (proximal_log_prob, behaviour_log_prob, entropy, advantage, value, behaviour_value, value_target, returns)
    for tensor in (*others, mask):
        assert tensor.shape == log_prob.shape, (tensor.shape, log_prob.shape)
    # Before anything else: 0 x NaN would be NaN, in the gradients too.
    any_log_prob = log_prob
    log_prob, proximal_log_prob, behaviour_log_prob, entropy, advantage, *of_critic = (
        torch.where(mask, tensor, 0.0) for tensor in (log_prob, *others)
    )
    value, behaviour_value, value_target, returns = of_critic
    named = {name for term in terms for name in term.fields}
    given = fields or {}
    fields = {name: _masked(tensor, mask) for name, tensor in given.items() if name in named}
    masks = {(None, None): mask, **{(term.over, term.within): _mask_of(term, mask, given) for term in terms}}
    means = {
        which: [MaskedMean(some, log_prob.dtype, sample_weight) for some in (of, _with(of, has_choice))]
        for which, of in masks.items()
    }
    share_out(ranks, [mean for pair in means.values() for mean in pair])
    mean, mean_of_chosen = means[None, None]

    advantage = advantage.detach()
    if settings.corrects_advantages:
        advantage = corrected(advantage, log_prob, behaviour_log_prob, settings.rho_bar)
    own_moments = moments(advantage, returns, mean_of_chosen, ranks)
    if settings.normalize_advantages:
        advantage = normalized(advantage, own_moments if advantage_moments is None else advantage_moments)

    samples = Samples(
        log_prob,
        proximal_log_prob,
        behaviour_log_prob,
        entropy,
        advantage,
        value,
        behaviour_value,
        value_target,
        zero_return,
        mean,
        mean_of_chosen,
        settings,
        fields,
        policy,
    )

    def counted(which: tuple[str | None, str | None]) -> Samples:
        if which == (None, None):
            return samples
        of_term = torch.where(masks[which], any_log_prob, 0.0)
        return samples._replace(log_prob=of_term, mean=means[which][0], mean_of_chosen=means[which][1])

    computed = [term.compute(counted((term.over, term.within))) for term in terms]
    values = [coefficient * value for coefficient, (value, _) in zip(coefficients, computed, strict=True)]
    loss = sum(values[1:], start=values[0])
    if sample_weight is not None:
        loss = loss * _mean_by_max(sample_weight, mask)

    with torch.no_grad():
        parts = [{"value": value, **others} for value, others in computed]
        of_all = iter(ranks.totals(loss, *(part for named in parts for part in named.values())))
        of_all_ranks = next(of_all)
        metrics: dict[str, Tensor] = {}
        for term, names in zip(terms, parts, strict=True):
            totals = {name: next(of_all) for name in names}
            metrics |= {name: metric(totals) for name, metric in term.metrics.items()}
        metrics |= {
            "advantage_mean": own_moments.mean,
            "advantage_stddev": own_moments.stddev,
            "num_samples": mean.num_samples,
            "num_choices": mean_of_chosen.num_samples,
        }
    return PPOLoss(loss, {name: metric.detach() for name, metric in metrics.items()}, of_all_ranks.detach())


def _mask_of(term: LossTerm, mask: Tensor, fields: Mapping[str, Tensor]) -> Tensor:
    of = mask if term.over is None else fields[term.over]
    return of if term.within is None else of & fields[term.within]


def _with(mask: Tensor, has_choice: Tensor | None) -> Tensor:
    return mask if has_choice is None else mask & has_choice


def _masked(tensor: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask.reshape(*mask.shape, *[1] * (tensor.ndim - mask.ndim)), tensor, 0)


def _mean_by_max(weight: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean of the weights [T, B] in the mask, divided by the largest of them."""
    weight = torch.where(mask, weight, 0.0)
    return weight.sum() / (mask.sum() * weight.max()).clamp(min=1e-30)
