"""What a player sees: a tensor of the game, its own seat, and whose turn it is.

The tensor of a game need not say the last two, and what a position is worth to a player depends on both. So they follow
it, as a one-hot of the player and a number for each player who acts now. A game of one player has neither.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyspiel

ALL_AT_ONCE = int(pyspiel.PlayerId.SIMULTANEOUS)
"""The mover where every player acts."""


class View(NamedTuple):
    """What one player sees. The tensor is to be written; the rest is there."""

    player: int
    whole: np.ndarray  # [n + 2P] float32
    tensor: np.ndarray  # [n], its beginning


class Views:
    """The views of P players by the mover. They are written anew for each observation, so all matches share them."""

    def __init__(self, num_players: int, num_numbers: int) -> None:
        """num_numbers: n, of the tensor."""
        movers = [ALL_AT_ONCE, *range(num_players)]
        self.by_mover = {mover: _views(mover, num_players, num_numbers) for mover in movers}
        self.size = len(self.by_mover[0][0].whole)


def _views(mover: int, num_players: int, num_numbers: int) -> list[View]:
    seats = np.eye(num_players, dtype=np.float32)
    acts = seats.sum(axis=0) if mover == ALL_AT_ONCE else seats[mover]
    views = []
    for player, seat in enumerate(seats):
        turn = (seat, acts) if num_players > 1 else ()
        whole = np.concatenate((np.zeros(num_numbers, np.float32), *turn))
        views.append(View(player, whole, whole[:num_numbers]))
    return views
