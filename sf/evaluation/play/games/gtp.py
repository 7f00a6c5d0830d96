"""Translates between the Go Text Protocol (version 2) and OpenSpiel's go, which has numbers for moves.

`gtp:COMMAND` (`sf.evaluation.play.games.gtp_player`) and `sf-gtp` speak it: http://www.lysator.liu.se/~gunnar/gtp/.
"""

from __future__ import annotations

from typing import Any

import numpy as np

GO = "openspiel:go"
COLOURS = ("black", "white")
"""The colours of OpenSpiel's players 0 and 1."""

PASS = "pass"
RESIGN = "resign"
_COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # without I


def board_size(game: Any) -> int:
    """Returns the number of lines of a game of go."""
    return int(game.observation_tensor_shape()[-1])


def vertex(action: int, size: int) -> str:
    """Returns what the protocol calls an action, such as `D4` or `pass`."""
    row, column = divmod(action, size)
    return PASS if row == size else f"{_COLUMNS[column]}{row + 1}"


def action_of(word: str, size: int) -> int | None:
    """Returns the action that the protocol calls `word`, or None if there is none on such a board."""
    if word.lower() == PASS:
        return size * size
    column, row = _COLUMNS[:size].find(word[:1].upper()), word[1:]
    if not word or column < 0 or not (row.isascii() and row.isdecimal()) or not 1 <= int(row[:3]) <= size:
        return None
    return (int(row[:3]) - 1) * size + column


def stones(state: Any) -> np.ndarray:
    """Returns [S, S] int8, from row 1 on: 1 where black has a stone, -1 where white has one."""
    size = board_size(state.get_game())
    black, white, *_ = np.reshape(state.observation_tensor(0), (-1, size, size))
    return (black - white).astype(np.int8)


def black_lead(board: np.ndarray) -> int:
    """Returns by how many points black is ahead, without komi: its stones and what only it surrounds (Tromp-Taylor).

    board: see `stones`. All stones count as alive, as in OpenSpiel.
    """
    lead = int(board.sum())
    left = {(int(row), int(column)) for row, column in np.argwhere(board == 0)}
    while left:
        to_visit, num_points, neighbours = [left.pop()], 0, set()
        while to_visit:
            row, column = to_visit.pop()
            num_points += 1
            for at in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if at in left:
                    left.remove(at)
                    to_visit.append(at)
                elif min(at) >= 0 and max(at) < len(board) and board[at]:
                    neighbours.add(int(board[at]))
        if len(neighbours) == 1:
            lead += num_points * neighbours.pop()
    return lead
