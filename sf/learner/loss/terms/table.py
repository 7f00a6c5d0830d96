"""The terms of the loss. A new term is a module with a `LossTerm`, and its name in `TERMS`."""

from __future__ import annotations

from sf.config import LearnerConfig
from sf.learner.loss.terms.demonstration import DEMONSTRATION
from sf.learner.loss.terms.entropy import ENTROPY
from sf.learner.loss.terms.policy import POLICY
from sf.learner.loss.terms.search import SEARCH
from sf.learner.loss.terms.teacher import TEACHER
from sf.learner.loss.terms.term import LossTerm
from sf.learner.loss.terms.value import VALUE

TERMS = [POLICY, VALUE, ENTROPY, TEACHER, DEMONSTRATION, SEARCH]

# Metrics of all samples, beside those of the terms.
OF_SAMPLES = (
    "advantage_mean",  # before normalisation
    "advantage_stddev",
    "num_samples",  # in the mask
    "num_choices",  # of these, with more than one possible action
)


def terms_of(config: LearnerConfig) -> list[LossTerm]:
    """Returns the terms that a learner has."""
    return [term for term in TERMS if term.exists(config)]


def metrics_of(config: LearnerConfig) -> list[str]:
    """Returns the names of the metrics of the loss, in their order."""
    return [*(name for term in terms_of(config) for name in term.metrics), *OF_SAMPLES]


def coefficients_of(config: LearnerConfig) -> list[float]:
    """Returns what each of the `terms_of` a learner counts by."""
    return [getattr(config, term.coefficient) for term in terms_of(config)]
