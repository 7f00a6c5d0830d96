"""Advantages on their way into the policy's loss: corrected for the policy that acted, and normalised."""

from __future__ import annotations

from torch import Tensor

from sf.learner.batches.minibatches import Moments
from sf.learner.loss.masked_mean import MaskedMean
from sf.ranks.ranks import ALONE, Ranks

_LEAST_STDDEV = 1e-5  # is added, so that equal advantages are not divided by 0


def moments(advantage: Tensor, mean: MaskedMean, ranks: Ranks = ALONE) -> Moments:
    """Mean and standard deviation of advantages [T, B], over the samples of `mean`, of all ranks."""
    (centre,) = ranks.totals(mean(advantage))
    (variance,) = ranks.totals(mean((advantage - centre).square()))
    return Moments(centre, variance.sqrt())


def normalized(advantage: Tensor, of: Moments) -> Tensor:
    return (advantage - of.mean) / (of.stddev + _LEAST_STDDEV)


def corrected(advantage: Tensor, log_prob: Tensor, behaviour_log_prob: Tensor, rho_bar: float) -> Tensor:
    """Advantages [T, B] times the truncated importance weight of V-trace's policy gradient (Espeholt et al. 2018,
    section 4.2): min(rho_bar, exp(log_prob - behaviour_log_prob)). No gradients go through the weight."""
    return advantage * (log_prob.detach() - behaviour_log_prob).exp().clamp(max=rho_bar)
