"""Turns records into lines: running means on a common axis, and the mean over several seeds with its interval. Pure.

Shapes: R records of a run, S runs, P points of the common axis.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from sf.evaluation.statistics import ROUNDING, t_quantile
from sf.storage.run_records import is_number

_EVALUATION = re.compile(r"(policy_\d+/)?eval/")
NUM_POINTS = 400  # of a line: more than one sees
CONFIDENCE = "its 95 % confidence interval (Student's t)"
PLUS_MINUS = "±: half of the 95 % confidence interval of the mean over runs (Student's t)"
_SAME_END = 0.02  # of the axis: runs whose ends are no further apart have ended together


class Curve(NamedTuple):
    """One metric of one run."""

    x: np.ndarray  # [R] strictly increasing
    y: np.ndarray  # [R] finite


class Band(NamedTuple):
    """The mean of several runs; all [P]."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray  # NaN where fewer than two runs have a value, or all have the same
    high: np.ndarray
    num_runs: np.ndarray  # that have a value there


def curve(records: Sequence[Mapping[str, Any]], x: str, y: str) -> Curve:
    """The records that have both metrics.

    records: without those that were undone. Where a policy alone went back, as it does in a population, earlier records
    that are further along x are left out. The x of an evaluation is that of the policy that it evaluated, some time
    before its record.
    """
    evaluation = _EVALUATION.match(y)
    places = _evaluated(records, x, evaluation[1] or "") if evaluation else (record.get(x) for record in records)
    points: list[tuple[float, float]] = []
    for record, place in zip(records, places, strict=True):
        if not is_number(place):
            continue
        while points and points[-1][0] > place:
            points.pop()
        if is_number(record.get(y)):
            if points and points[-1][0] == place:
                points.pop()
            points.append((place, record[y]))
    table = np.array(points, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], table[:, 1])


def _evaluated(records: Sequence[Mapping[str, Any]], x: str, prefix: str) -> Iterator[float | None]:
    """x of each record; for an evaluation, x at the env steps of the policy. prefix: of the metrics of that policy."""
    known: list[tuple[float, float]] = []  # env steps of the policy, and x
    for record in records:
        place, env_steps = record.get(x), record.get(f"{prefix}env_steps")
        if is_number(place) and is_number(env_steps):
            while known and known[-1][0] >= env_steps:
                known.pop()
            known.append((env_steps, place))
        evaluated = record.get(f"{prefix}eval/env_steps")
        if known and is_number(evaluated):
            idx = bisect.bisect_left(known, evaluated, key=itemgetter(0))
            (steps_before, before), (steps_after, after) = known[max(idx - 1, 0)], known[min(idx, len(known) - 1)]
            place = float(np.interp(evaluated, [steps_before, steps_after], [before, after]))
        yield place


def running_mean(line: Curve, at: np.ndarray, window: float) -> np.ndarray:
    """The mean of the polygon through a curve, over a window around each point; NaN beyond its ends.

    at: [P]; window: in units of x. Towards the ends the window narrows so that it stays centred: the first and the last
    value are the recorded ones. It is exact for any spacing of records, as the difference of two integrals. Returns
    [P].
    """
    if not len(line.x):
        return np.full(at.shape, np.nan)
    reach = np.minimum(window / 2, np.minimum(at - line.x[0], line.x[-1] - at))
    centred = np.interp(at, line.x, line.y)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (_integral(line, at + reach) - _integral(line, at - reach)) / (2 * reach)
    # Of a window of hardly any width the difference is nothing but rounding.
    mean = np.where(reach > 1e-6 * max(line.x[-1] - line.x[0], 1e-300), mean, centred)
    return np.where((at >= line.x[0]) & (at <= line.x[-1]), mean, np.nan)


def band(lines: Sequence[Curve], window: float, num_points: int = NUM_POINTS) -> Band:
    """The mean over runs at each point of a common axis, with a 95 % confidence interval for that of all seeds.

    The axis begins where every run has a value, and goes on to the end of the longest: beyond the end of a run the mean
    is that of the others (`num_runs`). Runs of the same length end a few steps apart, so a run that ends just before
    the longest keeps its last value up to there. lines: none of them empty.
    """
    x = np.linspace(max(line.x[0] for line in lines), max(line.x[-1] for line in lines), num_points)
    ends = [line.x[-1] if x[-1] - line.x[-1] <= _SAME_END * x[-1] else x[-1] for line in lines]
    y = np.stack([running_mean(line, np.minimum(x, end), window) for line, end in zip(lines, ends, strict=True)])
    mean, error, num_runs = mean_over_runs(y)
    return Band(x, mean, mean - error, mean + error, num_runs)


def mean_over_runs(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the mean over runs, half of its 95 % confidence interval, and how many runs have a value; all [P].

    The interval is mean +- t s / sqrt(S) with Student's t of S - 1 degrees of freedom: right for few seeds, where a
    bootstrap is too narrow. It is NaN where fewer than two runs have a value, or all have the same. y: [S, P], NaN
    where a run has no value.
    """
    is_there = ~np.isnan(y)
    num_runs = is_there.sum(0)
    mean = np.where(is_there, y, 0.0).sum(0) / num_runs
    squares = np.where(is_there, y - mean, 0.0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        error = t_quantile(num_runs - 1) * np.sqrt(squares.sum(0) / (num_runs - 1) / num_runs)
    is_constant = np.nanmax(y, axis=0) - np.nanmin(y, axis=0) <= ROUNDING * np.nanmax(np.abs(y), axis=0)
    return mean, np.where(is_constant, np.nan, error), num_runs  # a single run is constant, too


def _integral(line: Curve, until: np.ndarray) -> np.ndarray:
    """The integral of the polygon through a curve, from its start to each point inside it."""
    areas = np.diff(line.x) * (line.y[1:] + line.y[:-1]) / 2
    before = np.concatenate([[0.0], np.cumsum(areas)])
    idx = np.clip(np.searchsorted(line.x, until, side="right") - 1, 0, len(line.x) - 1)
    return before[idx] + (until - line.x[idx]) * (line.y[idx] + np.interp(until, line.x, line.y)) / 2
