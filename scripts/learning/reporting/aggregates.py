"""Scores of several seeds and tasks as one: interquartile means with intervals, by rliable (Agarwal et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sf.machine import extras

REPS = 2_000  # of the bootstrap
_SEED = 0  # so that the same results give the same report


class Estimate(NamedTuple):
    """An interquartile mean, with its 95 % interval by a bootstrap that draws seeds within each task.

    With fewer than four seeds of one task, it is the mean: a quarter of them is none.
    """

    iqm: float
    low: float | None  # None for one seed
    high: float | None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return shown(self.iqm)
        return f"{shown(self.iqm)} [{shown(self.low)}, {shown(self.high)}]"


def require() -> None:
    """Raises ValueError where rliable is not installed."""
    extras.require("bench-learning", "rliable", purpose="the report")


def estimate(scores: np.ndarray) -> Estimate:
    """scores: [S, K] of S seeds and K tasks."""
    interval_estimates, iqm_of = _rliable()
    if len(scores) == 1:
        return Estimate(float(iqm_of(scores)), None, None)
    np.random.seed(_SEED)  # rliable draws from the global generator, whatever it is given
    points, intervals = interval_estimates({"scores": scores}, lambda drawn: np.array([iqm_of(drawn)]), reps=REPS)
    ((low,), (high,)) = intervals["scores"]
    return Estimate(float(points["scores"][0]), float(low), float(high))


def _rliable() -> tuple[Callable[..., Any], Callable[[np.ndarray], Any]]:
    from rliable.library import get_interval_estimates  # noqa: PLC0415  an extra, and slow
    from rliable.metrics import aggregate_iqm  # noqa: PLC0415

    return get_interval_estimates, aggregate_iqm


def shown(score: float) -> str:
    """With as many digits as a score of its size needs."""
    size = abs(score)
    return f"{score:,.0f}" if size >= 1000 else f"{score:.1f}" if size >= 10 else f"{score:.2f}"
