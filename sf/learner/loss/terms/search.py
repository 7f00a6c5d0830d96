"""Adds the divergence of the policy from what a search has found to be better (Silver et al. 2017, equation 1, whose
cross-entropy has the same gradient; for Gumbel roots Danihelka et al. 2022, equation 12)."""

from __future__ import annotations

from torch import Tensor

from sf.learner.loss.terms.term import LossTerm, Samples, total
from sf.shared.rows import SEARCHED


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    assert samples.policy is not None
    return samples.mean_of_chosen(samples.policy.divergence_from(samples.fields[SEARCHED])), {}


SEARCH = LossTerm(
    "search",
    _compute,
    metrics={"search/kl": total("value")},  # KL(search, policy), in nats
    coefficient="search_coeff",
    fields=(SEARCHED,),
    exists=lambda config: config.algorithm == "search",
)
