"""The entropy bonus: it keeps the policy from becoming certain too early (Mnih et al. 2016, section 4)."""

from __future__ import annotations

from torch import Tensor

from sf.learner.loss.terms.term import LossTerm, Samples


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    return -samples.mean_of_chosen(samples.entropy), {}


ENTROPY = LossTerm(
    "entropy", _compute, metrics={"entropy": lambda of_all: -of_all["value"]}, coefficient="exploration_loss_coeff"
)
