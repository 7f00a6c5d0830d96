"""What the record of a league says of each player, together: scores, ratings, and shares of the meta-game. Pure.

`sf-league` shows it, in the terminal, as JSON and as a picture.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sf.evaluation.statistics import statistics, wilson_interval
from sf.league.meta_solvers import alpharank, nash_average
from sf.league.openskill_ratings import openskill_ratings
from sf.league.ratings import Point, Rating, names_of, ratings
from sf.league.record import Match, Player, Row, meetings, result, scores_of

_MOST_ONE_BY_ONE = 100_000  # matches, which take openskill some seconds
_PARTS = 20  # of a run, in which win rates are averaged


class Payoffs(NamedTuple):
    """Holds what each player gained against each other one, two by two in a match of several.

    All [P, P], of the row's player against the column's; NaN where two never met, as nobody meets itself.
    """

    num_matches: np.ndarray
    win_rate: np.ndarray
    mean_score: np.ndarray
    margin: np.ndarray  # mean of half the difference of the scores: in a zero-sum game that is the mean score

    @property
    def is_complete(self) -> bool:
        """Returns whether each player met each other one."""
        return bool((self.num_matches + np.eye(len(self.num_matches)) > 0).all())

    def zero_sum(self) -> np.ndarray:
        """[P, P] the meta-game of wins, 2 x win rate - 1, 0 on the diagonal. Raises ValueError if a pair never met."""
        if not self.is_complete:
            raise ValueError("not every player met every other one: a meta-game needs all pairs")
        gain = 2 * self.win_rate - 1
        np.fill_diagonal(gain, 0.0)
        return gain


class Mean(NamedTuple):
    """low, high: the 95 % interval; None where it is not known: for a single match, or equal scores."""

    mean: float
    low: float | None
    high: float | None


class Standing(NamedTuple):
    """One player. None stands for what is not known: it met nobody, not all players have met, a package is missing, or
    there are more matches than openskill can go through in some seconds.
    """

    name: str
    env_steps: int | None  # that a policy had been trained on
    weights: str | None  # their fingerprint, of a player that comes from elsewhere
    num_matches: int  # against others
    score: Mean | None
    win_rate: Mean | None  # against all whom it met, match by match
    rating: Rating
    openskill: Rating | None
    nash_share: float | None
    nash_skill: float | None
    alpharank: float | None


class Progress(NamedTuple):
    """Says how policies that learn fared against the others meanwhile.

    opponents: O names. ends: [B + 1] env steps, where one part of the run ends and the next begins. win_rate: [O, B] of
    the policies that learn, all together; NaN where there was no match.
    """

    opponents: Sequence[str]
    ends: np.ndarray
    win_rate: np.ndarray


class Standings(NamedTuple):
    """held: the players whose ratings were known. players: the highest rating first. payoffs: in this order. curves:
    of each policy that learns.

    progress: None where no policy learns. missing: a sentence for each part that could not be computed.
    """

    held: Mapping[str, float]
    players: Sequence[Standing]
    payoffs: Payoffs
    curves: Mapping[str, Sequence[Point]]
    progress: Progress | None
    missing: Sequence[str]


def standings(rows: Sequence[Row], held: Mapping[str, float] | None = None) -> Standings:
    """held: see `sf.league.ratings.held_ratings`. Raises ValueError as that does."""
    rated = ratings(rows, held)
    matches = [row for row in rows if isinstance(row, Match)]
    one_by_one = openskill_ratings(rows, held) if len(matches) <= _MOST_ONE_BY_ONE else {}
    names = sorted(names_of(rows), key=lambda name: -rated.players[name].mean)
    env_steps = {row.name: row.env_steps for row in rows if isinstance(row, Player)}
    weights = {row.name: row.weights for row in rows if isinstance(row, Player)}
    env_steps |= {name: curve[-1].env_steps for name, curve in rated.curves.items()}
    scores, wins = _of_matches(matches)
    table = payoffs(names, matches)
    shares, missing = _shares(table, bool(rated.curves))
    return Standings(
        rated.held,
        [
            Standing(
                name=name,
                env_steps=env_steps.get(name),
                weights=weights.get(name),
                num_matches=len(wins[name]),
                score=_mean(scores[name]),
                win_rate=_rate(wins[name]),
                rating=rated.players[name],
                openskill=one_by_one.get(name),
                **{which: float(share[p]) if share is not None else None for which, share in shares.items()},
            )
            for p, name in enumerate(names)
        ],
        table,
        rated.curves,
        _progress(matches, rated.curves.keys(), [name for name in names_of(rows) if name not in rated.curves]),
        missing,
    )


def payoffs(players: Sequence[str], matches: Iterable[Match]) -> Payoffs:
    """players: the rows and columns. Matches of others do not count."""
    position = {name: p for p, name in enumerate(players)}
    sums: dict[tuple[str, str], list[float]] = {}  # by pair: matches, wins, scores, margins
    for match in matches:
        for name, other, score, other_score in meetings(match):
            of_pair = sums.setdefault((name, other), [0.0, 0.0, 0.0, 0.0])
            of_pair[0] += 1
            of_pair[1] += result(score, other_score)
            of_pair[2] += score
            of_pair[3] += (score - other_score) / 2
    num, wins, scores, margins = np.zeros((4, len(players), len(players)))
    for (name, other), of_pair in sums.items():
        if name in position and other in position:
            at = position[name], position[other]
            num[at], wins[at], scores[at], margins[at] = of_pair
    with np.errstate(invalid="ignore"):
        return Payoffs(num.astype(np.int64), wins / num, scores / num, margins / num)


def _of_matches(matches: Sequence[Match]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Returns by player its score in each match against others, and its mean result against each of them."""
    scores: dict[str, list[float]] = defaultdict(list)
    wins: dict[str, list[float]] = defaultdict(list)
    for match in matches:
        of_players = scores_of(match)
        results = dict.fromkeys(of_players, 0.0)
        for name, _, score, other_score in meetings(match):
            results[name] += result(score, other_score)
        for name, of_others in results.items():
            if len(results) > 1:
                scores[name].append(of_players[name])
                wins[name].append(of_others / (len(results) - 1))
    return scores, wins


def _progress(matches: Sequence[Match], learning: Collection[str], opponents: Sequence[str]) -> Progress | None:
    at = [match.env_steps for match in matches if match.env_steps is not None]
    if not learning or not opponents or not at:
        return None
    ends = np.linspace(min(at), max(at) + 1, _PARTS + 1)
    row = {name: o for o, name in enumerate(opponents)}
    won, num = np.zeros((2, len(opponents), _PARTS))
    for match in matches:
        if match.env_steps is not None:
            part = int((match.env_steps - ends[0]) / (ends[-1] - ends[0]) * _PARTS)
            for name, other, score, other_score in meetings(match):
                if name in learning and other in row:
                    won[row[other], part] += result(score, other_score)
                    num[row[other], part] += 1
    with np.errstate(invalid="ignore"):
        return Progress(opponents, ends, won / num)


def _mean(values: Sequence[float]) -> Mean | None:
    if not values:
        return None
    s = statistics(values, range(len(values)))
    return Mean(s.mean, s.low, s.high)


def _rate(results: Sequence[float]) -> Mean | None:
    if not results:
        return None
    rate = float(np.mean(results))
    return Mean(rate, *wilson_interval(rate, len(results)))


def _shares(table: Payoffs, is_learning: bool) -> tuple[dict[str, np.ndarray | None], list[str]]:
    """The shares of the meta-game of wins, and why some are missing."""
    shares: dict[str, np.ndarray | None] = dict.fromkeys(("nash_share", "nash_skill", "alpharank"))
    if not table.is_complete:
        if is_learning:  # snapshots never meet each other in a run
            return shares, []
        return shares, ["Not all players have met yet, so there is no Nash averaging and no alpha-rank."]
    missing = []
    game = table.zero_sum()
    for names, solver in (
        (("nash_share", "nash_skill"), nash_average),
        (("alpharank",), lambda game: [alpharank(game)]),
    ):
        try:
            shares.update(zip(names, solver(game), strict=True))
        except ValueError as error:  # noqa: PERF203  another package may be there
            missing.append(str(error))
    return shares, missing
