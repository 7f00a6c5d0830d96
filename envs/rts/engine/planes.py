"""What a player sees, as planes of the map."""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.places import column_of, numbers_of, sees
from sf.envs.rts.engine.state import FLAG, MINI, NEUTRAL, TOWERS
from sf.envs.rts.engine.units import BASE, RESOURCE
from sf.envs.rts.engine.units import FLAG as THE_FLAG

OWN_HP, ENEMY_HP, STORE, SEEN, WALLS = range(5)
"""The first planes: hit points; minerals or, in Capture the Flag, who has the flag; what is in sight; in Tower Defense,
walls. One for each kind of unit of each owner follow."""

STEP = 0.1  # what a 1 of a plane stands for, which are integers
_ONE, _LARGEST = 10, 127
MINERAL_STEP, MOST_MINERALS = 50, 20  # of a step of 0.1; in steps


@inner
def draw_planes(world, viewer, plane_of, out):  # noqa: PLR0912  each plane has its rule
    """Write what the player sees to `out` [C, S, S] int8, in tenths, from below to above.

    plane_of: [3, K], the plane of a kind of the player's own units, of the enemy's and of nobody's; -1: it has none.
    Player 1 sees the map turned round, so that both see their own base on the same side.
    """
    game, kinds = world.game, world.kinds
    out[:] = 0
    sign = 1.0 - 2.0 * viewer
    knows_all = game.rules == TOWERS
    if knows_all:
        out[SEEN] = _ONE
        for row in range(out.shape[1]):
            for column in range(out.shape[2]):
                if world.ground[row, column] < 0:
                    out[WALLS, row, column] = _ONE
    if game.rules == FLAG:
        if game.carrier >= 0:
            out[STORE] = _ONE if world.units[game.carrier].owner == viewer else -_ONE
    else:
        out[STORE] = min(world.players[viewer].minerals // MINERAL_STEP, MOST_MINERALS)
    for owner in range(3):
        of_whom = 2 if owner == NEUTRAL else owner ^ viewer
        for i in numbers_of(world, owner):
            unit = world.units[i]
            if not unit.alive:
                continue
            row, column = column_of(world, sign * unit.y), column_of(world, sign * unit.x)
            if owner == viewer:
                if not knows_all:
                    _light(out[SEEN], row, column, kinds[unit.kind].sight)
            elif not (knows_all or _is_known(game.rules, unit.kind) or sees(world, viewer, unit)):
                continue
            plane = plane_of[of_whom, unit.kind]
            if plane >= 0:
                hp = int(np.ceil(unit.hp / kinds[unit.kind].hp * _ONE))
                _add(out[plane], row, column, _ONE if unit.kind != RESOURCE else hp)
                if of_whom < 2:
                    _add(out[of_whom], row, column, hp)


@inner
def _add(plane, row, column, tenths):
    plane[row, column] = min(plane[row, column] + tenths, _LARGEST)


@inner
def _is_known(rules, kind):
    """The place of the enemy's base, and of the flag, is known from the beginning."""
    return (rules == MINI and kind == BASE) or (rules == FLAG and kind in (BASE, THE_FLAG))


@inner
def _light(plane, row, column, sight):
    """The cells whose middle is within the sight of a unit in the middle of this cell."""
    size, reach = len(plane), int(sight)
    for r in range(max(row - reach, 0), min(row + reach + 1, size)):
        for c in range(max(column - reach, 0), min(column + reach + 1, size)):
            if (r - row) * (r - row) + (c - column) * (c - column) <= sight * sight:
                plane[r, c] = _ONE
