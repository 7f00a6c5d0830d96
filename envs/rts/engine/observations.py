"""Draws the planes of the map that a player sees, and finds the commands that would do something now."""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.commands import builder, count, idle_maker
from sf.envs.rts.engine.orders import can_afford
from sf.envs.rts.engine.places import column_of, numbers_of, sees
from sf.envs.rts.engine.state import FLAG, MINI, NEUTRAL, NOBODY, TOWERS, inner
from sf.envs.rts.engine.towers import NUM_SITES, place_at
from sf.envs.rts.engine.units import BARRACKS, BASE, RESOURCE, TOWER, WORKER
from sf.envs.rts.engine.units import FLAG as THE_FLAG

OWN_HP, ENEMY_HP, STORE, SEEN, WALLS = range(5)
"""The first planes: hit points; minerals or, in Capture the Flag, who has the flag; what is in sight; in Tower Defense,
walls. One for each kind of unit of each owner follow."""

STEP = 0.1  # what a 1 of a plane stands for, which are integers
_ONE, _LARGEST = 10, 127
MINERAL_STEP, MOST_MINERALS = 50, 20  # of a step of 0.1; in steps

TACTICS = ("keep", "attack", "attack_in_range", "defend", "hit_and_run")
"""The tactics that a player may give to each kind of troop."""


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
    """Mark the cells whose middle is within the sight of a unit in the middle of this cell."""
    size, reach = len(plane), int(sight)
    for r in range(max(row - reach, 0), min(row + reach + 1, size)):
        for c in range(max(column - reach, 0), min(column + reach + 1, size)):
            if (r - row) * (r - row) + (c - column) * (c - column) <= sight * sight:
                plane[r, c] = _ONE


@inner
def write_allowed(world, owner, out):
    """Write which commands would do something: of Tower Defense, and of actions by type; no others have a mask.

    out: [L] int8, of all choices of all heads, one after the other; see `sf.envs.rts.controls`.
    """
    out[:] = 0
    if world.game.rules == TOWERS:
        out[0] = 1
        if can_afford(world, owner, TOWER):
            for site in range(NUM_SITES):
                out[1 + site] = place_at(world, site)[0]
        out[1 + NUM_SITES :] = 1  # commands of the user's own
    elif world.game.rules == FLAG:
        carrier = world.game.carrier
        out[:] = 1
        out[1] = carrier >= 0 and world.units[carrier].owner == owner
        out[4] = 0  # escort_flag tells only the athlete with the flag, which has a head of its own
    else:
        _write_allowed_by_kind(world, owner, out)


@inner
def _write_allowed_by_kind(world, owner, out):
    out[0], out[1] = 1, _can_make(world, owner, WORKER)
    can_build = can_afford(world, owner, BARRACKS) and builder(world, owner) != NOBODY
    out[2], out[3], out[4] = 1, can_build, count(world, owner, WORKER) > 0
    out[5] = 1
    num_troops = 0
    for kind in range(len(world.kinds)):
        num_troops += world.kinds[kind].made_by == BARRACKS
    at, n = 6 + num_troops, 0
    for kind in range(len(world.kinds)):
        if world.kinds[kind].made_by == BARRACKS:
            out[6 + n] = _can_make(world, owner, kind)
            out[at] = 1
            out[at + 1 : at + 5] = count(world, owner, kind) > 0
            at += 5
            n += 1


@inner
def _can_make(world, owner, kind):
    return can_afford(world, owner, kind) and idle_maker(world, owner, kind) != NOBODY
