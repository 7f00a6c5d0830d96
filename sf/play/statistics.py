"""What some numbers, one an episode, say of the policy that played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 2_000
CONFIDENCE = 0.95


class Statistics(NamedTuple):
    """low, high: the interval that holds the mean of all episodes there might be with a confidence of 95 %."""

    num: int
    mean: float
    low: float
    high: float
    median: float
    std: float  # of the episodes, n - 1 in the denominator; 0 for a single one
    min: float
    max: float


def statistics(values: Sequence[float]) -> Statistics:
    """Of at least one value. The interval is the percentile bootstrap of the mean (Efron 1979), seeded."""
    x = np.asarray(values, np.float64)  # [N]
    assert x.ndim == 1, x.shape
    rng = np.random.default_rng(0)
    means = x[rng.integers(len(x), size=(RESAMPLES, len(x)), dtype=np.int32)].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Statistics(
        num=len(x),
        mean=float(x.mean()),
        low=float(low),
        high=float(high),
        median=float(np.median(x)),
        std=float(x.std(ddof=1)) if len(x) > 1 else 0.0,
        min=float(x.min()),
        max=float(x.max()),
    )
