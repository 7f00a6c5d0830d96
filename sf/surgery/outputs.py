"""The outputs of a network after surgery: the probability of new choices, the scale of values, and what is lost."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from sf.envs import ActionSpec
from sf.model.distributions import ActionDistribution
from sf.surgery.axes import NEW, places
from sf.surgery.comparison import Pair, common
from sf.surgery.recent import Recent
from sf.surgery.subject import Subject

_HALVINGS = 60
_NEVER = -1e4  # the logit of a choice that is not taken where a mask allows any other


def new_choices(old: Subject, new: Subject) -> dict[str, Tensor]:
    """Returns the logits [k] that are new in heads that there were, by the name of the head."""
    where = places(new.actions.choices, old.actions.choices)
    known = {block.name for block in old.actions.choices}
    found, begin = {}, 0
    for block in new.actions.choices:
        idxs = begin + (where[begin : begin + block.size] == NEW).nonzero().flatten()
        if block.name in known and len(idxs):
            found[block.name] = idxs
        begin += block.size
    return found


def never_take_new_choices(pair: Pair) -> None:
    """Sets the biases of new choices, whose weights are 0."""
    for idxs in new_choices(pair.old, pair.new).values():
        pair.new_network.policy_head.bias[idxs] = _NEVER


def set_new_choices(pair: Pair, recent: Recent, probability: float) -> None:
    """Sets the biases of new choices, whose weights are 0. All new ones of a head together then have this probability,
    in the mean over what the policy meets. Old ones keep their ratios."""
    logits = dict(zip((b.name for b in pair.old.actions.choices), _of_heads(pair.old, recent.old_params), strict=True))
    for name, idxs in new_choices(pair.old, pair.new).items():
        odds = logits[name].double().logsumexp(-1)
        pair.new_network.policy_head.bias[idxs] = bias_for(odds, len(idxs), probability)


def bias_for(log_sums: Tensor, num_new: int, probability: float) -> float:
    """Returns the logit that so many new choices need to have this probability in the mean.

    log_sums: [M] the logarithm of the sum of the exponentials of the old logits, in M states.
    """
    low, high = float(log_sums.min()) - 100.0, float(log_sums.max()) + 100.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_more = torch.sigmoid(math.log(num_new) + middle - log_sums).mean() > probability
        low, high = (low, middle) if is_more else (middle, high)
    return high


def rescale_values(pair: Pair) -> tuple[str, float] | None:
    """Moves the value head between the scale of returns and that of their statistics, where `normalize_returns` says
    so. Statistics that begin count as one return of 0 with variance 1, which the first batch outweighs.

    Returns the layer and the factor of its weights, for moments; None if nothing is rescaled.
    """
    before, after = pair.old.model.normalize_returns, pair.new.model.normalize_returns
    have_one_scale = all(
        model.value_scale == "linear" and model.normalize_returns_by == "all"
        for model in (pair.old.model, pair.new.model)
    )
    if before == after or not have_one_scale:
        return None
    if after:
        pair.new_network.value_norm.moments.count.fill_(1.0)
        return None
    scale = pair.old_network.value_norm.scale()
    mixer = getattr(pair.new_network, "mixer", None)
    head = pair.new_network.value_head if mixer is None else mixer.head
    head.weight.mul_(scale.stddev)
    head.bias.mul_(scale.stddev).add_(scale.mean)
    return "value_head" if mixer is None else "mixer.head", float(scale.stddev)


class Loss(NamedTuple):
    """What is lost by what is removed.

    kl: mean divergence of the new policy from the old one, in nats, among the choices and numbers that both have.
    dropped: the mean probability with which the old policy takes a choice that is gone. value_error: root mean square.
    value_stddev: of the old values, to compare; both are 0 with a central critic, which sees more than is played.
    """

    kl: float
    dropped: float
    value_error: float
    value_stddev: float
    num_decisions: int


def loss(pair: Pair, recent: Recent) -> Loss:
    """Compares both networks in what the policy meets."""
    sizes = {block.name: block.size for block in pair.new.actions.choices}
    kept = {block.name: min(block.size, sizes.get(block.name, 0)) for block in pair.old.actions.choices}
    old, new = common(pair, recent.old_params, recent.new_params)
    heads = tuple(kept[name] for name in sizes if name in kept)
    spec = ActionSpec(heads, (old.shape[1] - sum(heads)) // 2)
    before, after = ActionDistribution(spec, old), ActionDistribution(spec, new)
    kl = (before.log_probs.exp() * (before.log_probs - after.log_probs)).sum((-2, -1))
    normals = (Normal(each.mean, each.log_stddev.exp(), validate_args=False) for each in (before, after))
    kl += kl_divergence(*normals).nan_to_num().sum(-1)  # a number that an agent lacks has no deviation
    dropped = torch.zeros(len(kl))
    for name, logits in zip(kept, _of_heads(pair.old, recent.old_params), strict=True):
        if name in sizes:
            dropped = torch.maximum(dropped, logits.softmax(-1)[:, kept[name] :].sum(-1))
    error = (recent.new_value - recent.old_value).square().mean().sqrt()
    stddev = recent.old_value.std(correction=0)
    return Loss(float(kl.mean()), float(dropped.mean()), float(error), float(stddev), len(kl))


def _of_heads(subject: Subject, params: Tensor) -> tuple[Tensor, ...]:
    """Params [M, P] -> the logits [M, A] of each head."""
    sizes = [block.size for block in subject.actions.choices]
    return params[:, : sum(sizes)].split(sizes, dim=-1)
