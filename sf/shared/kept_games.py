"""Lays out the memory of the buffer of games: positions of games that have ended, and how many there are.

The parent allocates it, and a learner fills it (`sf.learner.games.buffer`). So the successor of a learner that has died
goes on with the same games.
"""

from __future__ import annotations

import numpy as np

from sf.envs import ActionSpec, EnvSpec
from sf.shared.rows import step_fields
from sf.system.arrays import Field, SharedArrays

TARGET = "target"  # of the value of a position
COUNTS = ("first_position", "end_position", "first_game", "end_game", "num_drawn", "credit")
"""Names the counts of `sf.learner.games.buffer`. All of them count from the beginning of the run on."""


def allocate_games(spec: EnvSpec, num_games: int, num_bytes: int) -> SharedArrays:
    """Returns arrays of `spec`'s fields of a step by name, and `target`, each [P, ...], of as many positions as fit.

    The arrays of the buffer itself are `length` [num_games], the positions of each game; `counts` [2, len(COUNTS)]; and
    `latest` [1], which says which of the two rows of these is valid.
    """
    fields = _fields(spec, 1)
    num_positions = max(1, num_bytes // sum(field.num_bytes for field in fields))
    own = [
        Field("length", (num_games,), np.int64),
        Field("counts", (2, len(COUNTS)), np.float64),
        Field("latest", (1,), np.int64),
    ]
    return SharedArrays([*_fields(spec, num_positions), *own], name="sf-games")


def position_arrays(arrays: SharedArrays) -> dict[str, np.ndarray]:
    """Returns the arrays [P, ...] of positions, by the name of the field."""
    return {name: array for name, array in arrays.named("").items() if name not in ("length", "counts", "latest")}


def _fields(spec: EnvSpec, num_positions: int) -> list[Field]:
    action = ActionSpec.of(spec.action_space)
    shapes = [Field(each.name, (num_positions, *each.shape(action)), each.dtype) for each in step_fields(spec)]
    return [*shapes, Field(TARGET, (num_positions,), np.float32)]
