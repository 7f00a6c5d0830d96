"""Adds the divergence of the policy from what a search has found to be better (Silver et al. 2017, equation 1, whose
cross-entropy has the same gradient; for Gumbel roots Danihelka et al. 2022, equation 12)."""

from __future__ import annotations

from sf.learner.loss.terms.term import LossTerm, divergence_from, total
from sf.shared.rows import FULLY_SEARCHED, SEARCHED

SEARCH = LossTerm(
    "search",
    divergence_from(SEARCHED),
    metrics={"search/kl": total("value")},  # KL(search, policy), in nats
    coefficient="search_coeff",
    fields=(SEARCHED,),
    within=FULLY_SEARCHED,
    exists=lambda config: config.algorithm == "search",
)
