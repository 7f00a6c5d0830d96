"""Adds the divergence of the policy from what a teacher says to the loss (kickstarting, Schmitt et al. 2018, equation
2)."""

from __future__ import annotations

from torch import Tensor

from sf.learner.loss.terms.term import LossTerm, Samples, total
from sf.shared.teaching import PARAMS


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    assert samples.policy is not None
    return samples.mean_of_chosen(samples.policy.divergence_from(samples.fields[PARAMS])), {}


TEACHER = LossTerm(
    "teacher",
    _compute,
    metrics={"teacher/kl": total("value")},  # KL(teacher, policy), in nats
    coefficient="teacher_coeff",
    fields=(PARAMS,),
    exists=lambda config: bool(config.teacher),
)
