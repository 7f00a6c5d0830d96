"""Seeds of a single environment, as Gymnasium and PettingZoo mean them."""

from __future__ import annotations

import secrets

import numpy as np

from sf.envs.errors import UsageError

_MOST = 2**64 - 1


class Seeds:
    """Says which seed a reset begins with: the given one; at the first reset without one, one that nobody knows."""

    def __init__(self) -> None:
        self._is_seeded = False

    def next(self, given: int | None) -> int | None:
        """None: random numbers go on. Raises UsageError for what is no seed."""
        if given is None and self._is_seeded:
            return None
        if given is not None and not (isinstance(given, int | np.integer) and 0 <= given <= _MOST):
            raise UsageError(f"seed is {given!r}: an integer from 0 to {_MOST}")
        self._is_seeded = True
        return secrets.randbits(64) if given is None else int(given)
