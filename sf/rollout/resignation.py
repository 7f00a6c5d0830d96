"""Lets players of self-play resign where searches find that they lose (Silver et al. 2017, section "Self-play").

The threshold follows games that were played on all the same, of which it is known who lost.
"""

from __future__ import annotations

from collections import deque

import numpy as np

_PLAYED_ON = 0.1  # share of the games in which nobody resigns
_MOST_WRONG = 0.05  # share of the players that would resign, and do not lose
_WINDOW = 400  # players of the latest games that were played on
_FEWEST = 20  # of them below the threshold, so that one mistake is no more than allowed
_NUM_PLAYERS = 2


class Resignations:
    """Decides for E games of two players who resigns.

    threshold: of the value of the root, at which a player resigns; None while too little is known, and then all games
    are played on.
    """

    def __init__(self, num_games: int, rng: np.random.Generator) -> None:
        self.threshold: float | None = None
        self._rng = rng
        self._lowest = np.full((num_games, _NUM_PLAYERS), np.inf)  # values of the game so far
        self._is_played_on = np.ones(num_games, bool)
        self._window: deque[tuple[float, bool]] = deque(maxlen=_WINDOW)  # the lowest value, and whether it did not lose

    def resigns(self, game: int, player: int, value: float) -> bool:
        """Returns whether a player resigns in the place of its move. value: of the position, for that player."""
        self._lowest[game, player] = min(self._lowest[game, player], value)
        return self.threshold is not None and not self._is_played_on[game] and value <= self.threshold

    def game_over(self, game: int, rewards: np.ndarray | None) -> tuple[int, int]:
        """Call this when the next game begins. rewards: [2] of the last step; None if the game has no outcome.

        Returns how many players would have resigned in a game that was played on, and how many of these did not lose.
        """
        wrong = right = 0
        if self._is_played_on[game] and rewards is not None:
            for lowest, reward in zip(self._lowest[game].tolist(), rewards.tolist(), strict=True):
                if self.threshold is not None and lowest <= self.threshold:
                    wrong, right = wrong + (reward >= 0), right + (reward < 0)
                if lowest < np.inf:
                    self._window.append((lowest, reward >= 0))
            self.threshold = highest_threshold(list(self._window))
        self._lowest[game] = np.inf
        self._is_played_on[game] = self.threshold is None or self._rng.random() < _PLAYED_ON
        return wrong + right, wrong


def highest_threshold(seen: list[tuple[float, bool]]) -> float | None:
    """Returns the highest value, below 0, at which at most a share of 5 % of those who resign do not lose; None where
    there is none. seen: of each player the lowest value, and whether it did not lose."""
    ordered = sorted(each for each in seen if each[0] < 0)
    wrong = np.cumsum([is_wrong for _, is_wrong in ordered])
    values = np.array([value for value, _ in ordered])
    for num in range(len(ordered), _FEWEST - 1, -1):
        is_whole = num == len(ordered) or values[num] > values[num - 1]  # none that is equal is left out
        if is_whole and wrong[num - 1] <= _MOST_WRONG * num:
            return float(values[num - 1])
    return None
