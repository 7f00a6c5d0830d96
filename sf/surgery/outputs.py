"""The outputs of a network after surgery: the probability of new choices, the scale of values, and what is lost."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from sf.surgery.axes import NEW, places
from sf.surgery.comparison import Pair
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
    if before == after or "symlog" in (pair.old.model.value_scale, pair.new.model.value_scale):
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
    value_stddev: of the old values, to compare.
    """

    kl: float
    dropped: float
    value_error: float
    value_stddev: float
    num_decisions: int


def loss(pair: Pair, recent: Recent) -> Loss:
    """Compares both networks in what the policy meets."""
    old_heads, new_heads = (
        dict(zip((block.name for block in subject.actions.choices), _of_heads(subject, params), strict=True))
        for subject, params in ((pair.old, recent.old_params), (pair.new, recent.new_params))
    )
    divergence, dropped = torch.zeros(len(recent.old_value)), torch.zeros(len(recent.old_value))
    for name, old in old_heads.items():
        new = new_heads.get(name)
        if new is None:
            continue
        num = min(old.shape[-1], new.shape[-1])
        ours, theirs = new[:, :num].log_softmax(-1), old[:, :num].log_softmax(-1)
        divergence += (theirs.exp() * (theirs - ours)).sum(-1)
        dropped = torch.maximum(dropped, old.softmax(-1)[:, num:].sum(-1))
    divergence += _of_numbers(pair, recent)
    error = (recent.new_value - recent.old_value).square().mean().sqrt()
    return Loss(
        float(divergence.mean()),
        float(dropped.mean()),
        float(error),
        float(recent.old_value.std(correction=0)),
        len(recent.old_value),
    )


def _of_numbers(pair: Pair, recent: Recent) -> Tensor:
    """Returns the KL divergence [M] of the continuous numbers that both have."""
    where = places(pair.new.actions.numbers, pair.old.actions.numbers)
    known = (where != NEW).nonzero().flatten()
    (old_mean, old_log), (new_mean, new_log) = (
        (numbers[0][:, idxs], numbers[1][:, idxs])
        for numbers, idxs in (
            (_of_continuous(pair.old, recent.old_params), where[known]),
            (_of_continuous(pair.new, recent.new_params), known),
        )
    )
    variances = (2 * old_log).exp() + (old_mean - new_mean).square()
    return (new_log - old_log + variances * (-2 * new_log).exp() / 2 - 0.5).sum(-1)


def _of_continuous(subject: Subject, params: Tensor) -> tuple[Tensor, ...]:
    """Params [M, P] -> the means and the logarithms of the standard deviations [M, C]."""
    return params[:, sum(block.size for block in subject.actions.choices) :].chunk(2, dim=-1)


def _of_heads(subject: Subject, params: Tensor) -> tuple[Tensor, ...]:
    """Params [M, P] -> the logits [M, A] of each head."""
    sizes = [block.size for block in subject.actions.choices]
    return params[:, : sum(sizes)].split(sizes, dim=-1)
