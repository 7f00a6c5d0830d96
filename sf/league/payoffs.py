"""The payoff table of players: what each gained against each other one. Pure.

In a match of several agents a player's score is the mean of those of its agents, and the players in it are compared
two by two. The higher score wins, the same one is half a win for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from sf.league.record import Match


class Payoffs(NamedTuple):
    """All [P, P], of the row's player against the column's; NaN where two never met, as nobody meets itself."""

    num_matches: np.ndarray
    win_rate: np.ndarray
    mean_score: np.ndarray
    margin: np.ndarray  # mean of half the difference of the scores: in a zero-sum game that is the mean score

    @property
    def is_complete(self) -> bool:
        """Whether each player met each other one."""
        return bool((self.num_matches + np.eye(len(self.num_matches)) > 0).all())

    def zero_sum(self) -> np.ndarray:
        """[P, P] the meta-game of wins: 2 x win rate - 1, from -1 to 1, and 0 for a player against itself.

        Raises ValueError where two players never met.
        """
        if not self.is_complete:
            raise ValueError("not every player met every other one: a meta-game needs all pairs")
        gain = 2 * self.win_rate - 1
        np.fill_diagonal(gain, 0.0)
        return gain


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


def result(score: float, other_score: float) -> float:
    """Of the player with the first score: 1 for a win, 0.5 for a draw, 0 for a loss."""
    return 1.0 if score > other_score else 0.5 if score == other_score else 0.0


def scores_of(match: Match) -> dict[str, float]:
    """The score of each player of a match: the mean over its agents."""
    of_agents: dict[str, list[float]] = {}
    for name, score in zip(match.players, match.scores, strict=True):
        of_agents.setdefault(name, []).append(score)
    return {name: sum(scores) / len(scores) for name, scores in of_agents.items()}


def meetings(match: Match) -> Iterator[tuple[str, str, float, float]]:
    """Each player of a match with each other one, and their scores. A pair is there in both orders."""
    for (name, score), (other, other_score) in permutations(scores_of(match).items(), 2):
        yield name, other, score, other_score
