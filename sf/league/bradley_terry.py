"""Ratings of players by maximum likelihood, with their uncertainty: the model of Bradley and Terry (1952). Pure.

Ratings are on the scale of Elo (1978): the chance that a player beats another one is 1 / (1 + 10^(-d / 400)), where d
is its rating minus the other's. 400 points are 10 to 1. One player or more are held at ratings that are known, such
as 0. A draw is half a win.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

PER_LOG_ODDS = 400 / math.log(10)  # Elo
PRIOR_STD = 1000.0
_QUANTILE = 1.96  # of the normal distribution, for 95 %
_MAX_STEP = 400.0
_MAX_STEPS = 200


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
    """Of the log-likelihood: the gradient [P], and the negative of the second derivatives [P, P]."""
    idx, weight, num_players = results.player_idx, results.weight, len(ratings)
    log_odds = (weight * ratings[idx]).sum(axis=1) / PER_LOG_ODDS
    p = 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
    pull = (results.won - results.num * p)[:, None] * weight / PER_LOG_ODDS
    gradient = np.bincount(idx.ravel(), pull.ravel(), num_players)
    information = (results.num * p * (1 - p))[:, None, None] * weight[:, :, None] * weight[:, None, :]
    cells = idx[:, :, None] * num_players + idx[:, None, :]
    curvature = np.bincount(cells.ravel(), information.ravel() / PER_LOG_ODDS**2, num_players**2)
    return gradient, curvature.reshape(num_players, num_players)
