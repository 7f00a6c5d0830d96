"""Shaped rewards: what the learner gets for changes of game variables, on top of the scenario's reward.

They are hyperparameters, and no part of the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Shaping:
    """The reward for a change of one game variable from one step to the next."""

    variable: str
    up: float  # for each unit by which it grew
    down: float  # for each unit by which it shrank
    max_change: float = inf  # a greater change counts as this one


_AMMO_WORTH = (1, 1, 1, 5, 5, 5, 10, 10)  # by slot: ammunition of a stronger weapon is worth more
HEALTH_AND_AMMO = (
    Shaping("HEALTH", up=0.005, down=-0.003),
    *(Shaping(f"AMMO{slot}", up=0.0002 * p, down=-0.0001 * p) for slot, p in enumerate(_AMMO_WORTH)),
)
MEDIKITS = (Shaping("HEALTH", up=1.0, down=0.0, max_change=1.0),)  # 1 each, whatever it heals


def shaped_reward(shaping: Sequence[tuple[int, Shaping]], before: Sequence[float], after: Sequence[float]) -> float:
    """The sum over `shaping`: pairs of where a variable stands in `before` and `after`, and its worth."""
    reward = 0.0
    for idx, item in shaping:
        change = after[idx] - before[idx]
        if change > 0:
            reward += item.up * min(change, item.max_change)
        elif change < 0:
            reward += item.down * min(-change, item.max_change)
    return reward
