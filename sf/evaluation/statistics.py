"""What the episodes of a policy say of it: mean, spread, and how certain the mean is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 2_000
CONFIDENCE = 0.95
_Z = 1.959964  # that quantile of the normal distribution, on both sides
_DRAWN_AT_ONCE = 10**7


class Statistics(NamedTuple):
    """low, high: the 95 % confidence interval of the mean of all possible episodes; None for a single match."""

    num: int
    mean: float
    low: float | None
    high: float | None
    median: float
    std: float  # of the episodes, n - 1 in the denominator; 0 for a single one
    min: float
    max: float


def statistics(values: Sequence[float], match_idxs: Sequence[int]) -> Statistics:
    """Statistics of at least one value, [N]. match_idxs: [N] the match of each.

    The interval is the percentile bootstrap of the mean (Efron 1979), seeded. It draws whole matches (Davison and
    Hinkley 1997, section 3.8): the episodes of one match share its course, and together say little more than one of
    them.
    """
    x = np.asarray(values, np.float64)
    return _of(x, _interval(x, np.asarray(match_idxs)))


def rate_statistics(results: Sequence[float], match_idxs: Sequence[int]) -> Statistics:
    """As `statistics`, of at least one result between 0 and 1, such as a win, a draw or a defeat, [N].

    The interval is Wilson's, of as many draws as there are matches (Wilson 1927; Brown, Cai and DasGupta 2001 recommend
    it): that of the bootstrap has no width where all results are equal, and is too short near 0 and 1. Draws, and
    several results of a match, make it wider than it has to be.
    """
    x = np.asarray(results, np.float64)
    assert ((x >= 0.0) & (x <= 1.0)).all(), x
    return _of(x, wilson_interval(float(x.mean()), len({*match_idxs})))


def wilson_interval(rate: float, num: int) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of the chance that has shown this rate in `num` matches; None for a single one.

    Wilson 1927: all p with |rate - p| <= z sqrt(p (1 - p) / num).
    """
    if num < 2:
        return None, None
    shrunk = _Z**2 / num
    centre = (rate + shrunk / 2) / (1 + shrunk)
    half = math.sqrt(rate * (1 - rate) * shrunk + shrunk**2 / 4) / (1 + shrunk)
    return max(0.0, centre - half), min(1.0, centre + half)


def interval_of_constant(value: float, num: int, lowest: float, highest: float) -> tuple[float, float]:
    """The 95 % interval of the mean of scores from `lowest` to `highest`, where `num` matches have all shown `value`.

    At most 1 - 0.025^(1/num) of all matches end otherwise: the exact limit of Clopper and Pearson (1934) for what never
    happened in `num` matches; on one side of 95 % it is the rule of three, 3/num (Hanley and Lippman-Hand 1983). The
    ends are the means where those matches all give the lowest score, or all the highest. Without a range of scores
    there is no interval: matches that are rare enough to be missed could give anything (Bahadur and Savage 1956).
    """
    others = 1.0 - ((1 - CONFIDENCE) / 2) ** (1 / num)
    return value - others * (value - lowest), value + others * (highest - value)


def _of(x: np.ndarray, interval: tuple[float, float] | tuple[None, None]) -> Statistics:
    assert x.ndim == 1, x.shape
    low, high = interval
    return Statistics(
        num=len(x),
        mean=float(x.mean()),
        low=low,
        high=high,
        median=float(np.median(x)),
        std=float(x.std(ddof=1)) if len(x) > 1 else 0.0,
        min=float(x.min()),
        max=float(x.max()),
    )


def _interval(x: np.ndarray, match_idxs: np.ndarray) -> tuple[float, float] | tuple[None, None]:
    _, match, num = np.unique(match_idxs, return_inverse=True, return_counts=True)
    if len(num) < 2:
        return None, None
    total = np.bincount(match, x)
    rng = np.random.default_rng(0)
    means: list[np.ndarray] = []
    at_once = max(1, _DRAWN_AT_ONCE // len(num))
    for begin in range(0, RESAMPLES, at_once):
        drawn = rng.integers(len(num), size=(min(at_once, RESAMPLES - begin), len(num)), dtype=np.int32)
        means.append(total[drawn].sum(axis=1) / num[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def interval_text(s: Statistics, form: str = ",.2f") -> str:
    """form: of a number."""
    return "-" if s.low is None or s.high is None else f"{s.low:{form}} to {s.high:{form}}"


def mean_text(s: Statistics) -> str:
    """The mean with its interval, where there is one, and of how many episodes they are."""
    interval = "" if s.low is None else f" ({interval_text(s)})"
    return f"{s.mean:,.2f}{interval} over {s.num} episode{'' if s.num == 1 else 's'}"
