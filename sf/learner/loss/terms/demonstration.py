"""Adds the negative log-likelihood of what a demonstrator did to the loss (behaviour cloning; beside a loss of rewards,
Hester et al. 2018, DQfD)."""

from __future__ import annotations

from torch import Tensor

from sf.learner.demonstrations.field import DEMONSTRATED
from sf.learner.loss.terms.term import LossTerm, Samples, total


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    return -samples.mean_of_chosen(samples.log_prob), {}


DEMONSTRATION = LossTerm(
    "demonstration",
    _compute,
    metrics={"demonstrations/loss": total("value")},  # of the demonstrated actions, in nats
    coefficient="demo_coeff",
    over=DEMONSTRATED,
    exists=lambda config: bool(config.demonstrations),
)
