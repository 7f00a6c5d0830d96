"""Scores of several seeds and tasks as one: interquartile means (Agarwal et al. 2021) with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sf.evaluation.statistics import ROUNDING, t_quantile

RESAMPLES = 2_000  # of the bootstrap
_SEED = 0  # so that the same results give the same report
_CUT = 0.25  # of the scores at either end


@dataclass(frozen=True)
class Estimate:
    """An interquartile mean with its 95 % interval.

    With fewer than four seeds of one task it is the mean: a quarter of them is less than one.
    """

    iqm: float
    low: float | None  # None for one seed, and where all have the same score
    high: float | None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return shown(self.iqm)
        return f"{shown(self.iqm)} [{shown(self.low)}, {shown(self.high)}]"


def estimate(scores: np.ndarray) -> Estimate:
    """The interquartile mean of all scores. scores: [S, K] of S seeds and K tasks.

    The interval is iqm +- t e with Student's t of K (S - 1) degrees of freedom. e is the standard error by a bootstrap
    that draws seeds within each task, times sqrt(S / (S - 1)), by which the bootstrap of S seeds is too narrow
    (Hesterberg 2015, "What teachers should know about the bootstrap", section 3.2). Of the mean of one task it is the
    interval of Student's t.
    """
    from scipy.stats import bootstrap, trim_mean  # noqa: PLC0415  an extra, and slow to import

    def iqm(*by_task: np.ndarray, axis: int = -1) -> np.ndarray:
        return trim_mean(np.concatenate(by_task, axis=axis), _CUT, axis=axis)

    num_seeds, num_tasks = scores.shape
    centre = float(iqm(scores.ravel()))
    if np.ptp(scores, axis=0).max() <= ROUNDING * np.abs(scores).max():
        return Estimate(centre, None, None)
    rng = np.random.default_rng(_SEED)
    drawn = bootstrap(tuple(scores.T), iqm, n_resamples=RESAMPLES, method="percentile", random_state=rng)
    error = float(drawn.standard_error) * math.sqrt(num_seeds / (num_seeds - 1))
    half = float(t_quantile(num_tasks * (num_seeds - 1))) * error
    return Estimate(centre, centre - half, centre + half)


def shown(score: float) -> str:
    """With as many digits as a score of its size needs."""
    size = abs(score)
    return f"{score:,.0f}" if size >= 1000 else f"{score:.1f}" if size >= 10 else f"{score:.2f}"
