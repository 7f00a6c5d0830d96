"""Adds the divergence of the policy from what a teacher says to the loss (kickstarting, Schmitt et al. 2018, equation
2)."""

from __future__ import annotations

from sf.learner.loss.terms.term import LossTerm, divergence_from, total
from sf.shared.teaching import PARAMS

TEACHER = LossTerm(
    "teacher",
    divergence_from(PARAMS),
    metrics={"teacher/kl": total("value")},  # KL(teacher, policy), in nats
    coefficient="teacher_coeff",
    fields=(PARAMS,),
    exists=lambda config: bool(config.teacher),
)
