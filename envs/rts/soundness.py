"""Checks whether the state of a game can be: compiled functions count on that, and do not check it.

A snapshot is data from outside. Compiled functions index arrays by what is in it, and follow the lists of units in
cells.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sf.envs.rts.engine import ais
from sf.envs.rts.engine.orders import BUILD, MAKE, RUN_THROUGH
from sf.envs.rts.engine.state import DRAW, NEUTRAL, TOWERS, WALL, Worlds
from sf.envs.rts.engine.towers import WAVES
from sf.envs.rts.settings import GAMES, MOST_TICKS, OPPONENTS, Settings

_MANY = 1 << 48  # sums of such numbers do not overflow
_NUM_ORDERS = int(RUN_THROUGH) + 1
_Bounds = Mapping[str, tuple[float, float]]


def fault_of(world: Worlds, settings: Settings) -> str | None:
    """Returns what cannot be about one game of these settings, or None. world: with no first axis but in games."""
    num_units, num_kinds, half = 3 * settings.room, len(world.kinds), settings.size / 2
    rules = GAMES.index(settings.game)
    most = settings.size**2 if rules == TOWERS else 0
    return (
        _outside("game", world.games, _of_game(rules, settings))
        or _outside("player", world.players, _of_player(settings))
        or _outside("unit", world.units, _of_unit(num_units, num_kinds, half))
        or _outside("map", world.cells, {"": (-1, num_units - 1)})
        or _outside("ground", world.ground, {"": (WALL - 1 if rules == TOWERS else 0, most)})
        or _wrong_ai(world, settings)
        or _wrong_units(world, settings.room)
        or _wrong_cells(world, half)
    )


def _of_game(rules: int, settings: Settings) -> _Bounds:
    return {
        "half": (settings.size / 2,) * 2, "rules": (rules, rules), "tick": (0, _MANY), "max_ticks": (1, MOST_TICKS),
        "winner": (-1, DRAW), "first": (0, 1), "room": (settings.room,) * 2, "next_serial": (0, _MANY),
        "wave": (0, WAVES), "to_come": (0, _MANY), "carrier": (-1, 2 * settings.room - 1), "flag_share": (-2, 2),
    }  # fmt: skip


def _of_player(settings: Settings) -> _Bounds:
    half = settings.size / 2
    counts = ("minerals", "spent", "lost", "score", "kills", "leaks")
    return {
        "home_x": (-half, half), "home_y": (-half, half), "reward": (-_MANY, _MANY), "ai": (0, len(ais.AIS) - 1),
        "frame_skip": (1, _MANY), "num": (0, settings.room), **dict.fromkeys(counts, (0, _MANY)),
    }  # fmt: skip


def _of_unit(num_units: int, num_kinds: int, half: float) -> _Bounds:
    """Returns the bounds of all units, also of those that are gone: others may still have them in mind."""
    counts = ("target_serial", "hit_by_serial", "hit_tick", "serial", "ready_in", "load", "stuck", "damage")
    return {
        "x": (-half, half), "y": (-half, half), "to_x": (-_MANY, _MANY), "to_y": (-_MANY, _MANY),
        "hp": (-_MANY, _MANY), "kind": (0, num_kinds - 1), "owner": (0, int(NEUTRAL)), "order": (0, _NUM_ORDERS - 1),
        "target": (-1, num_units - 1), "hit_by": (-1, num_units - 1), "timer": (-_MANY, _MANY),
        "making": (-1, num_kinds - 1), "next": (-1, num_units - 1), "side": (-1, 1), "alive": (0, 1), "seen": (0, 7),
        **dict.fromkeys(counts, (0, _MANY)),
    }  # fmt: skip


def _outside(what: str, rows: np.ndarray, bounds: _Bounds) -> str | None:
    for field, (low, high) in bounds.items():
        values = rows[field] if field else rows
        if not (values.min() >= low and values.max() <= high):  # NaN is outside, too
            return f"{field or 'a cell'} of a {what} is not in {low:g} to {high:g}"
    return None


def _wrong_ai(world: Worlds, settings: Settings) -> str | None:
    known = [ais.AIS.index(name) for name in ("nobody", "random", *OPPONENTS[settings.game])]
    return None if np.isin(world.players["ai"], known).all() else "an AI commands that does not play this game"


def _wrong_units(world: Worlds, room: int) -> str | None:
    units, (carrier,) = world.units, world.games["carrier"]
    is_there = units["alive"] == 1
    owner, number = np.divmod(np.flatnonzero(is_there), room)
    if (units["owner"][is_there] != owner).any() or (number >= world.players["num"][owner]).any():
        return "a unit is not among those of its owner"
    hp, most = units["hp"][is_there], world.kinds["hp"][units["kind"][is_there]]
    if ((hp < 1) | (hp > most)).any():
        return "a unit has more hit points than its kind, or none"
    if (np.isin(units["order"], (BUILD, MAKE)) & (units["making"] < 0)).any():
        return "a unit makes nothing"
    if carrier >= 0 and not is_there[carrier]:
        return "the flag is with a unit that is not there"
    return None


def _wrong_cells(world: Worlds, half: float) -> str | None:
    """Each unit with a body is once in the list of its cell, and nothing else is."""
    units, size = world.units, len(world.cells)
    expected = (units["alive"] == 1) & (world.kinds["has_body"][units["kind"]] == 1)
    rows, columns = (np.clip((units[axis] + half).astype(np.int64), 0, size - 1) for axis in ("y", "x"))
    cell_of = np.where(expected, rows * size + columns, -1).tolist()
    following = units["next"].tolist()
    lists = world.cells.ravel()
    for cell in np.flatnonzero(lists >= 0).tolist():
        i = int(lists[cell])
        while i >= 0:
            if cell_of[i] != cell:
                return "the lists of units in cells do not agree with where units are"
            cell_of[i] = -1  # a second time would be a circle
            i = following[i]
    return None if max(cell_of) < 0 else "a unit is in no cell"
