"""Shows a player a tensor of the game, its own seat, and whose turn it is.

The tensor of a game need not say the last two, and what a position is worth to a player depends on both. So they follow
it, as a one-hot of the player and a number for each player who acts now. A game of one player has neither. Where the
tensor is a board, of rank 3, each of these numbers is a plane of it: a convolution sees them at every square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import pyspiel

from sf.envs.spaces.planes import Planes

OBSERVATION = "observation"
ALL_AT_ONCE = int(pyspiel.PlayerId.SIMULTANEOUS)
"""The mover where every player acts."""

_BOARD = 3  # the rank of a tensor [C, H, W]; all others are flat


class View(NamedTuple):
    """Holds what one player sees. The tensor is to be written; the rest is there."""

    player: int
    whole: np.ndarray  # [n + 2P] or [C + 2P, H, W] float32
    tensor: np.ndarray  # [n], its beginning in memory


class Views:
    """The views of P players by the mover. They are written anew for each observation, so all matches share them."""

    def __init__(self, num_players: int, tensor_shape: Sequence[int]) -> None:
        movers = [ALL_AT_ONCE, *range(num_players)]
        self.by_mover: dict[int, list[View]] = {}
        self.tensors: dict[int, np.ndarray] = {}  # [P, n] by the mover: those of all players
        for mover in movers:
            self.by_mover[mover], self.tensors[mover] = _views(mover, num_players, tensor_shape)
        self.shape = self.by_mover[0][0].whole.shape

    @property
    def space(self) -> gym.spaces.Box:
        """Returns the space of what a player sees."""
        is_board = len(self.shape) == _BOARD
        return Planes(*self.shape) if is_board else gym.spaces.Box(-np.inf, np.inf, self.shape, np.float32)


def _views(mover: int, num_players: int, tensor_shape: Sequence[int]) -> tuple[list[View], np.ndarray]:
    first, *board = tensor_shape if len(tensor_shape) == _BOARD else (int(np.prod(tensor_shape)),)
    seats = np.eye(num_players, dtype=np.float32)
    acts = seats.sum(axis=0) if mover == ALL_AT_ONCE else seats[mover]
    turns = np.array([np.concatenate((seat, acts)) if num_players > 1 else seat[:0] for seat in seats])
    wholes = np.zeros((num_players, first + turns.shape[1], *board), np.float32)
    wholes[:, first:] = turns.reshape(*turns.shape, *[1] * len(board))
    tensors = wholes[:, :first].reshape(num_players, -1)
    assert np.shares_memory(tensors, wholes)
    return [View(player, wholes[player], tensors[player]) for player in range(num_players)], tensors
