"""Random numbers, which are part of the state: of a game, or of a player of it."""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.inner import inner


@inner
def draw(holder):
    """64 random bits, of a game or a player (splitmix64)."""
    holder.rng = holder.rng + np.uint64(0x9E3779B97F4A7C15)
    z = holder.rng
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def uniform(holder, low, high):
    return low + (high - low) * (np.float64(draw(holder) >> np.uint64(11)) * 2.0**-53)


@inner
def below(holder, n):
    """An integer from 0 to n - 1."""
    return int(uniform(holder, 0.0, np.float64(n)))
