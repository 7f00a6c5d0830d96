"""Ratings by maximum likelihood, with their uncertainty: of fixed players, and of policies that learn. Pure.

The model is that of Bradley and Terry (1952), on the scale of Elo (1978): a player beats another one with probability
1 / (1 + 10^(-d / 400)), where d is its rating minus the other's. A draw is half a win. One player or more are held at
ratings that are known, such as 0.

A policy that learns has a rating for each time. It is a line through points: the beginning and the end of its matches,
and each snapshot, which is the policy at that time and so has the same rating. The points and the fixed players are
fitted together, so a snapshot is also rated by all that its policy met around it. Where a policy begins anew, one line
ends and another begins. In a match of k players each pair counts 2 / k: k - 1 results, as many as a ranking has.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sf.league.record import ExploiterReset, Match, Player, Reference, Row, meetings, policy_name, result

RANDOM = "random"
PER_LOG_ODDS = 400 / math.log(10)
PRIOR_STD = 1000.0
_QUANTILE = 1.96  # of the normal distribution, for 95 %
_MAX_STEP = 400.0
_MAX_STEPS = 200
DRIFT_STD = 200.0  # how far a policy that learns moves from point to point, before any result: a random walk


class Rating(NamedTuple):
    """low, high: the 95 % interval. It has no width where the player is held."""

    mean: float
    std: float
    low: float
    high: float


class Comparisons(NamedTuple):
    """Results of sides, each of which is a weighted sum of ratings: of C comparisons with up to K terms.

    A comparison is between sum(weight x rating) over its terms and 0, so a meeting of players i and j has the terms
    (i, 1) and (j, -1).
    """

    player_idx: np.ndarray  # [C, K] int
    weight: np.ndarray  # [C, K]
    won: np.ndarray  # [C] of `num`, draws as halves
    num: np.ndarray  # [C] matches, of which each may count for less than 1


class Point(NamedTuple):
    """A policy that learns at one time."""

    env_steps: int
    rating: Rating


class Ratings(NamedTuple):
    """held: the players whose ratings were known, at least one. players: by name, of all; a policy that learns has its
    last rating. curves: of each policy that learns.
    """

    held: Mapping[str, float]
    players: Mapping[str, Rating]
    curves: Mapping[str, Sequence[Point]]


def names_of(rows: Iterable[Row]) -> list[str]:
    """All players in the order of their joining, then the policies that learn."""
    rows = list(rows)
    fixed = [row.name for row in rows if isinstance(row, Player)]
    playing = [name for row in rows if isinstance(row, Match) for name in row.players]
    return list(dict.fromkeys([*fixed, *playing]))


def ratings(rows: Sequence[Row], held: Mapping[str, float] | None = None) -> Ratings:
    """held: see `held_ratings`. Raises ValueError where there is no player, or none of a name in held."""
    names = names_of(rows)
    held = held_ratings(rows, names, held)
    axis = _Axis(rows, names)
    results = _comparisons([row for row in rows if isinstance(row, Match)], axis)
    at = {axis.at_last[name]: rating for name, rating in held.items()}
    found = fit(results, axis.size, at, _prior(axis))
    return Ratings(
        held,
        {name: found[axis.at_last[name]] for name in names},
        {
            name: [Point(t, found[axis.begin[name] + k]) for k, t in enumerate(times)]
            for name, times in axis.times.items()
        },
    )


def held_ratings(rows: Iterable[Row], names: Sequence[str], held: Mapping[str, float] | None) -> Mapping[str, float]:
    """The ratings at which players are held: these; where they are None, those of the reference pool of the record;
    where it has none, random moves at 0, which are as strong in every run, else the first player.

    Raises ValueError where there is no player, or none of a name in held.
    """
    if not names:
        raise ValueError("the league has no players yet")
    if held is not None:
        for name in held:
            if name not in names:
                raise ValueError(f"anchor is {name}, which does not play here: use one of {', '.join(names)}")
        return held
    in_record: Mapping[str, float] = {}
    for row in rows:
        if isinstance(row, Reference):
            in_record = row.ratings
    playing = {name: rating for name, rating in in_record.items() if name in names}
    return playing or {RANDOM if RANDOM in names else names[0]: 0.0}


class _Axis:
    """Which number each rating has: one for a fixed player, one for each point of a policy that learns.

    times: env steps of the points. begin: the number of the first of them. at_last: of a player as it is now. anew:
    env steps after which a policy began anew.
    """

    def __init__(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        fixed = {row.name: row for row in rows if isinstance(row, Player)}
        snapshots = {name: row for name, row in fixed.items() if row.policy is not None and row.env_steps is not None}
        self.anew: dict[str, set[int]] = {name: set() for name in names if name not in fixed}
        for row in rows:
            if isinstance(row, ExploiterReset) and policy_name(row.policy) in self.anew:
                self.anew[policy_name(row.policy)].add(row.env_steps)
        self.times = {name: times for name in self.anew if (times := _times(name, rows, self.anew[name]))}
        self.begin: dict[str, int] = {}
        self.at_last: dict[str, int] = {}
        self.size = 0
        for name, times in self.times.items():
            self.begin[name] = self.size
            self.size += len(times)
            self.at_last[name] = self.size - 1
        for name in names:
            if name in self.times:
                continue
            policy = _policy_of(snapshots[name]) if name in snapshots else None
            if policy in self.times:
                self.at_last[name] = self.begin[policy] + self.times[policy].index(snapshots[name].env_steps or 0)
            else:
                self.at_last[name] = self.size
                self.size += 1

    def terms(self, name: str, env_steps: int | None) -> list[tuple[int, float]]:
        """The rating of a player at a time, as two numbers of the axis and their weights."""
        if name not in self.times or env_steps is None:
            return [(self.at_last[name], 1.0), (self.at_last[name], 0.0)]
        times, begin = self.times[name], self.begin[name]
        if len(times) == 1:
            return [(begin, 1.0), (begin, 0.0)]
        after = min(max(bisect_left(times, env_steps), 1), len(times) - 1)
        share = (env_steps - times[after - 1]) / (times[after] - times[after - 1])
        return [(begin + after - 1, 1.0 - share), (begin + after, share)]


def _policy_of(snapshot: Player) -> str:
    assert snapshot.policy is not None
    return policy_name(snapshot.policy)


def _times(name: str, rows: Sequence[Row], anew: Collection[int]) -> list[int]:
    """Returns the times of the points of a policy that learns; none if no match says when it was."""
    own = [row.env_steps_of(name) for row in rows if isinstance(row, Match) and name in row.players]
    at = [env_steps for env_steps in own if env_steps is not None]
    of_snapshots = [
        row.env_steps
        for row in rows
        if isinstance(row, Player) and row.policy is not None and row.env_steps is not None and _policy_of(row) == name
    ]
    ends = [end for end in anew if at and min(at) <= end < max(at)]
    return sorted({min(at), max(at), *of_snapshots, *ends, *(end + 1 for end in ends)}) if at else []


def _comparisons(matches: Sequence[Match], axis: _Axis) -> Comparisons:
    idxs, weights, won, num = [], [], [], []
    for match in matches:
        of_match = 2 / max(len(set(match.players)), 1)
        for name, other, score, other_score in meetings(match):
            if name < other:
                own, theirs = (axis.terms(each, match.env_steps_of(each)) for each in (name, other))
                idxs.append([idx for idx, _ in (*own, *theirs)])
                weights.append([*(weight for _, weight in own), *(-weight for _, weight in theirs)])
                won.append(of_match * result(score, other_score))
                num.append(of_match)
    return Comparisons(
        np.array(idxs, np.int64).reshape(-1, 4),
        np.array(weights, np.float64).reshape(-1, 4),
        np.array(won, np.float64),
        np.array(num, np.float64),
    )


def _prior(axis: _Axis) -> np.ndarray:
    """[P, P] the precision: fixed players, and the first point of each line of a policy that learns, are anywhere; the
    other points of a line are a random walk from there."""
    precision = np.eye(axis.size) / PRIOR_STD**2
    for name, times in axis.times.items():
        for k, time in enumerate(times[:-1], start=axis.begin[name]):
            if time in axis.anew[name]:
                continue
            precision[k + 1, k + 1] = 0.0
            precision[k : k + 2, k : k + 2] += np.array([[1.0, -1.0], [-1.0, 1.0]]) / DRIFT_STD**2
    return precision


def fit(
    results: Comparisons, num_players: int, held: Mapping[int, float], precision: np.ndarray | None = None
) -> list[Rating]:
    """The most probable ratings by Newton's method, and the normal approximation of their posterior there (Laplace).

    held: ratings that are known, by the number of the player: at least one, since results only say differences.
    precision: [P, P] of the normal prior of the ratings around the mean of those held. Default: each has the standard
    deviation PRIOR_STD, which keeps the rating of a player finite that won or lost all of its matches.
    """
    assert results.player_idx.shape == results.weight.shape, results
    prior = np.eye(num_players) / PRIOR_STD**2 if precision is None else precision
    free = ~np.isin(np.arange(num_players), [*held])
    centre = float(np.mean([*held.values()]))
    ratings = np.full(num_players, centre)
    ratings[[*held]] = [*held.values()]
    for _ in range(_MAX_STEPS):
        gradient, curvature = _derivatives(results, ratings)
        gradient, curvature = (gradient - prior @ (ratings - centre))[free], (curvature + prior)[np.ix_(free, free)]
        step = np.linalg.solve(curvature, gradient)
        longest = float(np.abs(step).max(initial=0.0))
        ratings[free] += step * min(1.0, _MAX_STEP / max(longest, 1e-12))
        if longest < 1e-6:
            break
    variance = np.zeros(num_players)
    variance[free] = np.diag(np.linalg.inv(curvature))
    return [
        Rating(mean, std, mean - _QUANTILE * std, mean + _QUANTILE * std)
        for mean, std in zip(ratings.tolist(), np.sqrt(variance).tolist(), strict=True)
    ]


def _derivatives(results: Comparisons, ratings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes the gradient [P] of the log-likelihood, and the negative of its second derivatives [P, P]."""
    idx, weight, num_players = results.player_idx, results.weight, len(ratings)
    log_odds = (weight * ratings[idx]).sum(axis=1) / PER_LOG_ODDS
    p = 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
    pull = (results.won - results.num * p)[:, None] * weight / PER_LOG_ODDS
    gradient = np.bincount(idx.ravel(), pull.ravel(), num_players)
    information = (results.num * p * (1 - p))[:, None, None] * weight[:, :, None] * weight[:, None, :]
    cells = idx[:, :, None] * num_players + idx[:, None, :]
    curvature = np.bincount(cells.ravel(), information.ravel() / PER_LOG_ODDS**2, num_players**2)
    return gradient, curvature.reshape(num_players, num_players)
