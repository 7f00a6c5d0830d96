"""Which commands would do something now."""

from __future__ import annotations

from sf.envs.rts.engine.commands import NUM_SITES, builder, count, idle_maker, place_at
from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders.giving import has_room
from sf.envs.rts.engine.state import FLAG, NOBODY, TOWERS
from sf.envs.rts.engine.units import BARRACKS, TOWER, WORKER

TACTICS = ("keep", "attack", "attack_in_range", "defend", "hit_and_run")
"""What each kind of troop may be told."""


@inner
def write_allowed(world, owner, out):
    """For Tower Defense, and for commands by type in the other games: no other actions have a mask.

    out: [L] int8, of all choices of all heads, one after the other; see `sf.envs.rts.controls`.
    """
    out[:] = 0
    if world.game.rules == TOWERS:
        out[0] = 1
        if world.players[owner].minerals >= world.kinds[TOWER].cost and has_room(world, owner):
            for site in range(NUM_SITES):
                out[1 + site] = place_at(world, site)[0]
        out[1 + NUM_SITES :] = 1  # commands of the user's own
    elif world.game.rules == FLAG:
        carrier = world.game.carrier
        out[:] = 1
        out[1] = carrier >= 0 and world.units[carrier].owner == owner
        out[4] = 0  # escort_flag tells only the athlete with the flag, which has a head of its own
    else:
        _of_kinds(world, owner, out)


@inner
def _of_kinds(world, owner, out):
    out[0], out[1] = 1, _can_make(world, owner, WORKER)
    out[2], out[3], out[4] = 1, _can_build(world, owner), count(world, owner, WORKER) > 0
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
    if world.players[owner].minerals < world.kinds[kind].cost or not has_room(world, owner):
        return False
    return idle_maker(world, owner, kind) != NOBODY


@inner
def _can_build(world, owner):
    if world.players[owner].minerals < world.kinds[BARRACKS].cost or not has_room(world, owner):
        return False
    return builder(world, owner) != NOBODY
