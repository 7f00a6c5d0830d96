"""The table of units. A new unit is one row; `table` makes of it what the compiled functions read.

Figures of Mini-RTS are those of Tian et al. 2017, "ELF: an extensive, lightweight and flexible research platform for
real-time strategy games"; how long things take is not said there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sf.envs.errors import UsageError

RADIUS = 0.25
"""Of every unit with a body. No unit is inside another."""


class Unit(NamedTuple):
    """One kind of unit. Lengths are in cells of the map, times in ticks."""

    name: str
    cost: int = 0  # minerals
    hp: int = 1
    defence: int = 0  # is taken off every hit, which costs 1 at least
    speed: float = 0.0  # cells a tick; 0: it does not move
    attack: int = 0  # hit points of a hit; 0: it does not fight
    range: float = 0.0  # between centres
    sight: float = 0.0
    cooldown: int = 15  # ticks from one hit to the next
    build_ticks: int = 50  # how long it is made
    made_by: str = ""  # the kind that makes it
    is_troop: bool = False  # whether commands to all troops are for it
    has_body: bool = True


UNITS: tuple[Unit, ...] = (
    Unit("worker", 50, 50, 0, 0.1, 2, 1.0, 3.0, 10, 50, "base"),
    Unit("melee_attacker", 100, 100, 1, 0.1, 15, 1.0, 3.0, 15, 100, "barracks", is_troop=True),
    Unit("range_attacker", 100, 50, 0, 0.2, 10, 5.0, 5.0, 30, 100, "barracks", is_troop=True),
    Unit("barracks", 200, 200, 1, sight=5.0, build_ticks=150, made_by="worker"),
    Unit("base", 500, 500, 2, sight=5.0),
    Unit("resource", hp=1000),
    Unit("flag", has_body=False),
    Unit("athlete", 0, 100, 0, 0.1, 10, 1.0, 5.0, 10, 100, "base", is_troop=True),
    Unit("tower", 50, 200, 1, attack=12, range=3.5, sight=5.0, cooldown=10, build_ticks=1),
    Unit("runner", 0, 60, 0, 0.15),
)

NAMES = tuple(unit.name for unit in UNITS)
# Numbers of kinds. Not of type int: Numba would compile a function anew for each one that is handed to it.
WORKER, MELEE, RANGE, BARRACKS, BASE, RESOURCE, FLAG, ATHLETE, TOWER, RUNNER = map(np.int64, range(len(UNITS)))

_COUNTS = ("cost", "hp", "defence", "attack", "cooldown", "build_ticks")
_FLAGS = ("is_troop", "has_body")
_LENGTHS = ("speed", "range", "sight")

KIND = np.dtype(
    [(name, "i8") for name in (*_COUNTS, "made_by", *_FLAGS)] + [(name, "f8") for name in ("speed", "reach", "sight")],
    align=True,
)
"""A row of what `table` returns. made_by: a kind, or -1. reach: the range of the unit."""

_MOST, _FARTHEST = 1_000_000, 1_000
_WITH_COMMANDS = ("base", "worker", "barracks")  # that have commands of their own, where each kind has


def table(units: Sequence[Unit] = UNITS) -> np.ndarray:
    """Returns [K] KIND, first the rows of `UNITS` with any figures. Raises UsageError for what cannot be played."""
    names = [unit.name for unit in units]
    if tuple(names[: len(NAMES)]) != NAMES:
        raise UsageError(f"units are {names}: begin with {list(NAMES)}, in this order, and add your own behind them")
    rows = np.zeros(len(units), KIND)
    for row, unit in zip(rows, units, strict=True):
        _require_sound(unit, names)
        for field in (*_COUNTS, *_FLAGS, "speed", "sight"):
            row[field] = getattr(unit, field)
        row["reach"] = unit.range
        row["made_by"] = names.index(unit.made_by) if unit.made_by else -1
    return rows


def _require_sound(unit: Unit, names: Sequence[str]) -> None:
    if names.count(unit.name) > 1:
        raise UsageError(f"units have two rows {unit.name!r}: give each unit a name of its own")
    if unit.made_by and unit.made_by not in names:
        raise UsageError(f"unit {unit.name!r}: made_by is {unit.made_by!r}: one of {names}, or ''")
    if unit.name in _WITH_COMMANDS and unit.made_by == NAMES[BARRACKS]:
        raise UsageError(f"unit {unit.name!r}: made_by is {unit.made_by!r}, which is for troops: another one, or ''")
    for field in _COUNTS:
        value, least = getattr(unit, field), 1 if field == "hp" else 0
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= _MOST:
            raise UsageError(f"unit {unit.name!r}: {field} is {value!r}: an integer from {least} to {_MOST}")
    for field in _LENGTHS:
        value = getattr(unit, field)
        if not isinstance(value, int | float | np.number) or not 0 <= value <= _FARTHEST:
            raise UsageError(f"unit {unit.name!r}: {field} is {value!r}: a number from 0 to {_FARTHEST}")
