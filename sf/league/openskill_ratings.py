"""Ratings that follow the matches one by one, by openskill: the Plackett-Luce model of Weng and Lin (2011).

Each match changes the ratings of those in it and nothing else, so this is quick enough for a run that goes on, and
knows matches of many players. But it depends on the order of the matches, and its uncertainty is too small:
`sf.league.ratings` fits all matches together, and is what to judge players by. The scale is the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping

from openskill.models import PlackettLuce

from sf.league.ratings import PER_LOG_ODDS, Rating, held_ratings, names_of
from sf.league.record import ExploiterRestarted, Match, Player, Row, policy_name, scores_of

_START_STD = 500.0
_DRIFT_STD = 10.0  # what a policy that learns may have changed by since its last match
_HELD_STD = 1e-3
_QUANTILE = 1.96


class OpenskillRatings:
    """The ratings so far. held: those that are known, by name."""

    def __init__(self, held: Mapping[str, float] | None = None) -> None:
        # Two players of equal uncertainty are compared by a logistic curve of width beta x sqrt(2).
        beta = PER_LOG_ODDS / math.sqrt(2)
        self._model = PlackettLuce(mu=0.0, sigma=_START_STD, beta=beta, tau=0.0)
        self._held = dict(held or {})
        self._start = statistics.fmean(self._held.values()) if self._held else 0.0  # of a player whom nobody has met
        self._fixed: set[str] = set()
        self._ratings: dict[str, tuple[float, float]] = {}  # mean and standard deviation

    def add(self, row: Row) -> None:
        """A player that joins, a match that is over, or an exploiter whose learner has begun anew."""
        if isinstance(row, Player):
            self._fixed.add(row.name)
            policy = None if row.policy is None else self._ratings.get(policy_name(row.policy))
            if policy is not None:  # a snapshot is its policy at this time
                self._ratings.setdefault(row.name, policy)
        elif isinstance(row, ExploiterRestarted):  # before, its earlier self plays on, though it is reset
            self._ratings.pop(policy_name(row.policy), None)
        elif isinstance(row, Match):
            self._rate(scores_of(row))

    def of(self, name: str) -> Rating:
        """Returns the rating of a player; one that has met nobody is rated as new."""
        mean, std = self._rating(name)
        return Rating(mean, std, mean - _QUANTILE * std, mean + _QUANTILE * std)

    def _rating(self, name: str) -> tuple[float, float]:
        if name in self._held:
            return self._held[name], _HELD_STD
        return self._ratings.get(name, (self._start, _START_STD))

    def _rate(self, scores: dict[str, float]) -> None:
        if len(scores) < 2:
            return
        teams = []
        for name in scores:
            mean, std = self._rating(name)
            teams.append([self._model.rating(mean, std if name in self._fixed else math.hypot(std, _DRIFT_STD))])
        for name, (rated,) in zip(scores, self._model.rate(teams, scores=list(scores.values())), strict=True):
            self._ratings[name] = rated.mu, rated.sigma


def openskill_ratings(rows: Iterable[Row], held: Mapping[str, float] | None = None) -> dict[str, Rating]:
    """Rates all players after all matches, by name. held: as in `sf.league.ratings.held_ratings`."""
    rows = list(rows)
    names = names_of(rows)
    after = OpenskillRatings(held_ratings(rows, names, held))
    for row in rows:
        after.add(row)
    return {name: after.of(name) for name in names}
