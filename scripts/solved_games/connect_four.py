"""Solves positions of connect four exactly: alpha-beta over bitboards, with a table of the positions that were met.

A board is two 64-bit numbers: the stones of the player to move, and all stones. Bit 7 x column + row is a cell; the
seventh bit of a column stays empty, so that lines do not run from one column into the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit, uint64

COLUMNS, ROWS = 7, 6
_BOTTOM = np.uint64(sum(1 << 7 * column for column in range(COLUMNS)))
_BOARD = np.uint64(int(_BOTTOM) * ((1 << ROWS) - 1))
_ORDER = np.array([3, 2, 4, 1, 5, 0, 6])  # columns in the middle have more lines
_TABLE = (1 << 23) + 9  # places of the table of positions; odd, so that all bits of a position count
_ONE, _TWO, _THREE = uint64(1), uint64(2), uint64(3)


class Solver:
    """Says how a position ends if both players play perfectly. It remembers what it has met."""

    def __init__(self) -> None:
        self._keys = np.zeros(_TABLE, np.uint64)
        self._bounds = np.zeros(_TABLE, np.int8)

    def outcomes(self, moves: Sequence[int]) -> dict[int, int]:
        """Returns how each legal move ends for the player who makes it: 1 is won, 0 drawn and -1 lost.

        moves: the columns from the empty board on, of a game that is not over.
        """
        own, mask = _board(moves)
        found = {}
        for column in range(COLUMNS):
            cell = (mask + np.uint64(1 << 7 * column)) & np.uint64(((1 << ROWS) - 1) << 7 * column)
            if not cell:
                continue
            if cell & _wins(own, mask):
                found[column] = 1
            elif len(moves) + 1 == COLUMNS * ROWS:
                found[column] = 0
            else:
                after = mask | cell
                found[column] = -int(_solve(own ^ mask, after, -1, 1, self._keys, self._bounds))
        return found


def _board(moves: Sequence[int]) -> tuple[np.uint64, np.uint64]:
    """Returns the stones of the player to move, and all stones."""
    own = mask = 0
    for column in moves:
        own ^= mask  # who has not moved last is to move
        mask |= mask + (1 << 7 * column)
    return np.uint64(own), np.uint64(mask)


@njit("uint64(uint64, uint64)")
def _wins(stones, mask):
    """Returns the empty cells that would complete four of these stones."""
    found = (stones << _ONE) & (stones << _TWO) & (stones << _THREE)
    for shift in (uint64(6), uint64(7), uint64(8)):
        above = (stones << shift) & (stones << _TWO * shift)
        below = (stones >> shift) & (stones >> _TWO * shift)
        found |= above & ((stones << _THREE * shift) | (stones >> shift))
        found |= below & ((stones >> _THREE * shift) | (stones << shift))
    return found & (_BOARD ^ mask)


@njit("int64(uint64)")
def _count(bits):
    number = 0
    while bits:
        bits &= bits - _ONE
        number += 1
    return number


@njit("int64(uint64, uint64, int64, int64, uint64[:], int8[:])")
def _solve(own, mask, low, high, keys, bounds):
    """Returns the outcome for the player to move, exactly where it lies between `low` and `high`."""
    possible = (mask + _BOTTOM) & _BOARD
    if not possible:
        return 0
    if possible & _wins(own, mask):
        return 1
    threats = _wins(own ^ mask, mask)
    forced = possible & threats
    if forced:
        if forced & (forced - _ONE):
            return -1
        possible = forced
    possible &= ~(threats >> _ONE)  # else the opponent wins on top of it
    if not possible:
        return -1
    key = own + mask
    place = key % uint64(len(keys))
    if keys[place] == key:  # 0 to 8: what the outcome is at least and at most
        low, high = max(low, bounds[place] // 3 - 1), min(high, bounds[place] % 3 - 1)
        if low >= high:
            return low
    at_least, at_most = low, high
    cells = np.zeros(COLUMNS, np.uint64)
    promises = np.zeros(COLUMNS, np.int64)
    num = 0
    for column in _ORDER:
        cell = possible & (uint64(63) << uint64(7 * column))
        if cell:
            promise = _count(_wins(own | cell, mask | cell))
            k = num
            while k and promises[k - 1] < promise:
                cells[k], promises[k] = cells[k - 1], promises[k - 1]
                k -= 1
            cells[k], promises[k] = cell, promise
            num += 1
    best = -1
    for k in range(num):
        best = max(best, -_solve(own ^ mask, mask | cells[k], -at_most, -at_least, keys, bounds))
        at_least = max(at_least, best)
        if at_least >= at_most:
            break
    # A value at or below `low` is an upper bound, one at or above `high` a lower one.
    keys[place] = key
    bounds[place] = ((best if best > low else -1) + 1) * 3 + (best if best < high else 1) + 1
    return best
