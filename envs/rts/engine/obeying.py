"""Does one tick of what a unit has been told. A new order is a constant, a function, and its line in `obey`.

All hits of a tick take effect at its end, so nobody is the first to hit.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine import orders
from sf.envs.rts.engine.orders import ATTACK, IDLE, can_afford, gather, has_target, order, order_at, pay
from sf.envs.rts.engine.places import (
    ANY,
    TROOP,
    distance2,
    is_free,
    nearest,
    remove,
    spawn,
    spawn_beside,
    walk,
    walk_downhill,
)
from sf.envs.rts.engine.state import FLAG, NEUTRAL, inner
from sf.envs.rts.engine.units import BASE, WORKER

TOUCH = 0.75  # cells between centres, at which a worker reaches a mine, a base or a building site
LOAD = 20  # minerals that a worker carries
MINING = 50  # ticks that it takes to mine them
_JUST, _LATELY = np.int64(2), np.int64(20)  # ticks since a hit
_WARY = 1.5  # cells more than the reach of an enemy, at which one who hits and runs does run
PATIENCE = 60  # ticks in which a unit cannot move, or comes no nearer to where it was sent, before it gives up


@inner
def obey(world, i):  # noqa: PLR0912  one line for each order
    """Do one tick of what unit i has been told."""
    unit = world.units[i]
    if unit.ready_in > 0:
        unit.ready_in -= 1
    told = unit.order
    if told == orders.IDLE:
        idle_step(world, i)
    elif told == orders.ATTACK:
        attack_step(world, i)
    elif told == orders.GATHER:
        gather_step(world, i)
    elif told == orders.MOVE:
        move_step(world, i)
    elif told == orders.HIT_AND_RUN:
        hit_and_run_step(world, i)
    elif told == orders.MAKE:
        make_step(world, i)
    elif told == orders.BUILD:
        build_step(world, i)
    elif told == orders.RISE:
        rise_step(world, i)
    elif told == orders.GET_FLAG:
        get_flag_step(world, i)
    elif told == orders.GO_HOME:
        player = world.players[unit.owner]
        walk(world, i, player.home_x, player.home_y)
    elif told == orders.GUARD:
        guard_step(world, i)
    elif told == orders.RUN_THROUGH:
        walk_downhill(world, i)


@inner
def move_step(world, i):
    """Go to a place, or up to what stands there. Whoever gets no nearer for too long stops where it is."""
    unit = world.units[i]
    left = _left(unit)
    arrived = left == 0.0 or (left <= TOUCH * TOUCH and not is_free(world, unit.to_x, unit.to_y, i))
    if arrived or unit.stuck > PATIENCE:
        order(world, i, orders.IDLE)
    elif walk(world, i, unit.to_x, unit.to_y) and _left(unit) >= left:
        unit.stuck += 1


@inner
def _left(unit):
    """Returns the square of the distance to the place where a unit is to go."""
    dx, dy = unit.to_x - unit.x, unit.to_y - unit.y
    return dx * dx + dy * dy


@inner
def gather_step(world, i):
    unit = world.units[i]
    if unit.load > 0:
        base = nearest(world, i, unit.owner, BASE, 4.0 * world.game.half)
        if base < 0:
            return
        if distance2(unit, world.units[base]) <= TOUCH * TOUCH:
            world.players[unit.owner].minerals += unit.load
            unit.load = 0
        else:
            walk(world, i, world.units[base].x, world.units[base].y)
        return
    if not has_target(world, i):
        gather(world, i)
        return
    mine = world.units[unit.target]
    if distance2(unit, mine) > TOUCH * TOUCH:
        walk(world, i, mine.x, mine.y)
    elif unit.timer < MINING:
        unit.timer += 1
    else:
        unit.timer = 0
        unit.load = min(LOAD, mine.hp)
        mine.hp -= unit.load
        if mine.hp == 0:
            remove(world, unit.target)


@inner
def build_step(world, i):
    unit = world.units[i]
    dx, dy = unit.to_x - unit.x, unit.to_y - unit.y
    if _left(unit) > TOUCH * TOUCH:
        walk(world, i, unit.to_x, unit.to_y)
        if unit.stuck > PATIENCE:
            gather(world, i)
        return
    if can_afford(world, unit.owner, unit.making):
        building = spawn(world, unit.owner, unit.making, unit.to_x, unit.to_y)
        if building < 0 and unit.stuck <= PATIENCE:  # somebody stands there, or the worker itself
            unit.stuck += 1
            walk(world, i, 2.0 * unit.x - unit.to_x + dy, 2.0 * unit.y - unit.to_y - dx)
            return
        if building >= 0:
            pay(world, unit.owner, unit.making)
            order(world, building, orders.RISE)
            world.units[building].timer = world.kinds[unit.making].build_ticks
    gather(world, i)


@inner
def rise_step(world, i):
    """A building is there from the beginning, and of use after a while."""
    unit = world.units[i]
    unit.timer -= 1
    if unit.timer <= 0:
        order(world, i, orders.IDLE)


@inner
def make_step(world, i):
    unit = world.units[i]
    unit.timer -= 1
    if unit.timer > 0:
        return
    made = spawn_beside(world, i, unit.making)
    if made >= 0:
        order(world, i, orders.IDLE)
        if world.units[made].kind == WORKER:
            gather(world, made)


@inner
def get_flag_step(world, i):
    """Go to the flag, and take it where nobody has it."""
    flag = NEUTRAL * world.game.room
    if distance2(world.units[i], world.units[flag]) > TOUCH * TOUCH:
        walk(world, i, world.units[flag].x, world.units[flag].y)
    elif world.game.carrier < 0:
        world.game.carrier = i
        order(world, i, orders.GO_HOME)


@inner
def idle_step(world, i):
    """A tower or a troop hits the nearest unit in its reach; a troop goes after who has hit it from farther off."""
    unit = world.units[i]
    kind = world.kinds[unit.kind]
    if kind.attack == 0 or not (kind.is_troop or kind.speed == 0.0):
        return
    if unit.ready_in == 0:
        whom = TROOP if world.game.rules == FLAG else ANY  # a base is not to be destroyed there
        foe = nearest(world, i, 1 - unit.owner, whom, kind.reach)
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
    _fight(world, i, unit.target)


@inner
def hit_and_run_step(world, i):
    """Go to the enemy's base, shoot at troops in range or at it; who is hit runs from troops until its next shot."""
    unit = world.units[i]
    enemy, kind = 1 - unit.owner, world.kinds[unit.kind]
    threat = nearest(world, i, enemy, TROOP, kind.sight)
    if threat >= 0 and unit.ready_in > 0 and hit_lately(world, i, _LATELY):
        other = world.units[threat]
        reach = world.kinds[other.kind].reach
        if distance2(unit, other) < (reach + _WARY) * (reach + _WARY):
            walk(world, i, 2.0 * unit.x - other.x, 2.0 * unit.y - other.y)
            return
    if threat < 0 or distance2(unit, world.units[threat]) > kind.reach * kind.reach:
        threat = nearest(world, i, enemy, BASE, kind.reach)
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
            foe = nearest(world, carrier, 1 - unit.owner, TROOP, world.kinds[unit.kind].sight)
    if foe >= 0:
        _fight(world, i, foe)
    elif carrier >= 0 and world.units[carrier].owner == unit.owner and distance2(unit, world.units[carrier]) > 1.0:
        walk(world, i, world.units[carrier].x, world.units[carrier].y)


@inner
def _fight(world, i, j):
    """Unit i hits unit j where it can, or goes there."""
    unit, other = world.units[i], world.units[j]
    reach = world.kinds[unit.kind].reach
    if distance2(unit, other) <= reach * reach:
        _hit_if_ready(world, i, j)
    else:
        walk(world, i, other.x, other.y)


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
