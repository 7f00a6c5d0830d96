"""Advantages on their way into the policy's loss: corrected for the policy that acted, and normalised."""

from __future__ import annotations

from torch import Tensor

from sf.learner.batches.minibatches import Moments
from sf.learner.loss.masked_mean import MaskedMean
from sf.ranks.ranks import ALONE, Ranks

_ROUNDING = 1e-5  # of the size of returns: what many sums in float32 may be off by
_LEAST = 1e-30  # where all returns are 0


def moments(advantage: Tensor, returns: Tensor, mean: MaskedMean, ranks: Ranks = ALONE) -> Moments:
    """Mean and standard deviation of advantages [T, B], over the samples of `mean`, of all ranks.

    returns: [T, B], the value targets, in the same scale as the advantages.
    """
    centre, squared_return = ranks.totals(mean(advantage), mean(returns.square()))
    (variance,) = ranks.totals(mean((advantage - centre).square()))
    return Moments(centre, variance.sqrt(), _ROUNDING * squared_return.sqrt())


def normalized(advantage: Tensor, of: Moments) -> Tensor:
    """Shifts and scales advantages to mean 0 and standard deviation 1. Those that differ by their rounding alone
    become almost 0."""
    return (advantage - of.mean) / (of.stddev + of.rounding).clamp(min=_LEAST)


def corrected(advantage: Tensor, log_prob: Tensor, behaviour_log_prob: Tensor, rho_bar: float) -> Tensor:
    """Advantages [T, B] times the truncated importance weight of V-trace's policy gradient (Espeholt et al. 2018,
    section 4.2): min(rho_bar, exp(log_prob - behaviour_log_prob)). No gradients go through the weight."""
    return advantage * (log_prob.detach() - behaviour_log_prob).exp().clamp(max=rho_bar)
