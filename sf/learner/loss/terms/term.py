"""A term of the loss: one number over the samples of a minibatch, with a coefficient and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.loss.masks import MaskedMean
from sf.model.distributions import ActionDistribution


class LossSettings(NamedTuple):
    """What does not change from one sample to the next."""

    with_ppo_clip: bool  # PPO's surrogate; else the plain gradient
    clip_ratio: float | Tensor
    rho_bar: float  # truncation of importance weights
    with_importance_weight: bool  # of the plain gradient; V-trace needs it, GAE is without
    clip_value: float  # 0 turns the clipping of the value loss off
    normalize_advantages: bool

    @property
    def corrects_advantages(self) -> bool:
        """PPO's surrogate has the ratio of the policies in it, the plain gradient has not."""
        return self.with_importance_weight and not self.with_ppo_clip


class Samples(NamedTuple):
    """What a term is computed from: tensors [T, B], which are 0 where a sample does not count.

    log_prob, entropy and value carry gradients. advantage is normalised, and carries none. zero_return: the value that
    stands for a return of 0. mean: takes means over the samples that count; mean_of_chosen: over those of them in which
    more than one action is possible. fields: the fields of a step that the terms name, by name. policy: the target
    policy in all samples; None if the caller gives none.
    """

    log_prob: Tensor
    proximal_log_prob: Tensor
    behaviour_log_prob: Tensor
    entropy: Tensor
    advantage: Tensor
    value: Tensor
    behaviour_value: Tensor
    value_target: Tensor
    zero_return: Tensor | float
    mean: MaskedMean
    mean_of_chosen: MaskedMean
    settings: LossSettings
    fields: Mapping[str, Tensor]
    policy: ActionDistribution | None


Totals = Mapping[str, Tensor]
"""The value and the parts of a term, by name, over the samples of all ranks."""


def total(name: str) -> Callable[[Totals], Tensor]:
    """Returns a metric that is the part of this name."""
    return lambda totals: totals[name]


def divergence_from(field_name: str) -> Callable[[Samples], tuple[Tensor, dict[str, Tensor]]]:
    """Returns what computes KL(other, policy), where this field of a step has the parameters of the other one."""

    def compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
        assert samples.policy is not None
        return samples.mean_of_chosen(samples.policy.divergence_from(samples.fields[field_name])), {}

    return compute


@dataclass(frozen=True)
class LossTerm:
    """A term of the loss.

    compute: returns the value, 0-dim, and the parts of the metrics, 0-dim: means and sums over the samples of this
    rank, which add up to those of all. metrics: makes each metric, by name, from these totals and that of the value,
    "value". coefficient: the flag by which the value counts. fields: the fields of a step that `compute` reads. over:
    the field of a step, [T, B] bool, that says which samples count in the place of those that are trained on;
    `log_prob`, `mean` and `mean_of_chosen` are of these then. within: the field that says which of them
    count, where not all do. exists: whether a learner has the term.
    """

    name: str
    compute: Callable[[Samples], tuple[Tensor, dict[str, Tensor]]]
    metrics: Mapping[str, Callable[[Totals], Tensor]]
    coefficient: str
    fields: tuple[str, ...] = ()
    over: str | None = None
    within: str | None = None
    exists: Callable[[LearnerConfig], bool] = field(default=lambda config: True)
