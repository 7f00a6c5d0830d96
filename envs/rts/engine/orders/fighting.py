"""Orders of those that fight. All hits of a tick take effect at its end, so nobody is the first to hit."""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.movement import walk
from sf.envs.rts.engine.orders.giving import ATTACK, IDLE, has_target, order, order_at
from sf.envs.rts.engine.places import distance2, nearest, nearest_of, nearest_troop
from sf.envs.rts.engine.state import FLAG
from sf.envs.rts.engine.units import BASE

_JUST, _LATELY = np.int64(2), np.int64(20)  # ticks since a hit
_WARY = 1.5  # cells more than the reach of an enemy, at which one who hits and runs does run


@inner
def idle_step(world, i):
    """A tower or a troop hits the nearest unit in its reach; a troop goes after who has hit it from farther off."""
    unit = world.units[i]
    kind = world.kinds[unit.kind]
    if kind.attack == 0 or not (kind.is_troop or kind.speed == 0.0):
        return
    if unit.ready_in == 0:
        if world.game.rules == FLAG:  # a base is not to be destroyed
            foe = nearest_troop(world, i, 1 - unit.owner, kind.reach)
        else:
            foe = nearest(world, i, 1 - unit.owner, kind.reach)
        if foe >= 0:
            _hit(world, i, foe)
            return
    if kind.is_troop and hit_lately(world, i, _JUST):
        foe = world.units[unit.hit_by]
        if distance2(unit, foe) > kind.reach * kind.reach:
            order_at(world, i, ATTACK, unit.hit_by)


@inner
def attack_step(world, i):
    unit = world.units[i]
    if not has_target(world, i):
        order(world, i, IDLE)
        return
    target = world.units[unit.target]
    reach = world.kinds[unit.kind].reach
    if distance2(unit, target) <= reach * reach:
        _hit_if_ready(world, i, unit.target)
    else:
        walk(world, i, target.x, target.y)


@inner
def hit_and_run_step(world, i):
    """Go to the enemy's base, shoot at troops in range or at it; who is hit runs from troops until its next shot."""
    unit = world.units[i]
    enemy, kind = 1 - unit.owner, world.kinds[unit.kind]
    threat = nearest_troop(world, i, enemy, kind.sight)
    if threat >= 0 and unit.ready_in > 0 and hit_lately(world, i, _LATELY):
        other = world.units[threat]
        reach = world.kinds[other.kind].reach
        if distance2(unit, other) < (reach + _WARY) * (reach + _WARY):
            walk(world, i, 2.0 * unit.x - other.x, 2.0 * unit.y - other.y)
            return
    if threat < 0 or distance2(unit, world.units[threat]) > kind.reach * kind.reach:
        threat = nearest_of(world, i, enemy, BASE, kind.reach)
    if threat >= 0:
        _hit_if_ready(world, i, threat)
    else:
        walk(world, i, world.players[enemy].home_x, world.players[enemy].home_y)


@inner
def guard_step(world, i):
    """Attack whoever attacks this unit or the one with the flag; else stay with that."""
    unit, carrier = world.units[i], world.game.carrier
    foe = -1
    if hit_lately(world, i, _LATELY):
        foe = unit.hit_by
    elif carrier >= 0 and world.units[carrier].owner == unit.owner:
        if hit_lately(world, carrier, _LATELY):
            foe = world.units[carrier].hit_by
        else:
            foe = nearest_troop(world, carrier, 1 - unit.owner, world.kinds[unit.kind].sight)
    if foe >= 0:
        reach = world.kinds[unit.kind].reach
        if distance2(unit, world.units[foe]) <= reach * reach:
            _hit_if_ready(world, i, foe)
        else:
            walk(world, i, world.units[foe].x, world.units[foe].y)
    elif carrier >= 0 and world.units[carrier].owner == unit.owner and distance2(unit, world.units[carrier]) > 1.0:
        walk(world, i, world.units[carrier].x, world.units[carrier].y)


@inner
def hit_lately(world, i, ticks):
    """Returns whether unit i was hit within so many ticks, by a unit that is still there."""
    unit = world.units[i]
    if unit.hit_by < 0 or unit.hit_tick < world.game.tick - ticks:
        return False
    return world.units[unit.hit_by].alive == 1 and world.units[unit.hit_by].serial == unit.hit_by_serial


@inner
def _hit(world, i, j):
    """Unit i hits unit j. All hits of a tick take effect at its end."""
    unit, other = world.units[i], world.units[j]
    other.damage += max(world.kinds[unit.kind].attack - world.kinds[other.kind].defence, 1)
    other.hit_by, other.hit_by_serial, other.hit_tick = i, unit.serial, world.game.tick
    unit.ready_in = world.kinds[unit.kind].cooldown


@inner
def _hit_if_ready(world, i, j):
    if world.units[i].ready_in == 0:
        _hit(world, i, j)
