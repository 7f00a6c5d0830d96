"""The entropy bonus: it keeps the policy from becoming certain too early (Mnih et al. 2016, section 4)."""

from __future__ import annotations

from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.loss.term import LossTerm, Samples
from sf.learner.optimizer.learning_rate import linear


def annealed_bonus(config: LearnerConfig, share_done: float, has_end: bool) -> float | None:
    """Returns the weight of the bonus when this share of the run is done, or None if it does not change.

    has_end: whether the run ends by steps or seconds. Mutations change the weight that the run begins with.
    """
    weight, final, extra = (
        config.exploration_loss_coeff,
        config.exploration_loss_coeff_final,
        config.exploration_loss_coeff_extra,
    )
    if final is not None:
        return linear(weight, share_done, final)
    if has_end and weight > 0 and extra > 0:
        return weight + extra * (1.0 - share_done) ** 3
    return None


def _compute(samples: Samples) -> tuple[Tensor, dict[str, Tensor]]:
    return -samples.mean_of_chosen(samples.entropy), {}


ENTROPY = LossTerm(
    "entropy", _compute, metrics={"entropy": lambda of_all: -of_all["value"]}, coefficient="exploration_loss_coeff"
)
