"""Orders of single units. One lasts many ticks, until what it is for has happened; in each tick it does what takes effect
at once: a step, a hit, a load, a new unit. A new order is a constant, a function, and its line in `obey`.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.inner import inner

from sf.envs.rts.engine.movement import walk, walk_downhill
from sf.envs.rts.engine.state import NEUTRAL, distance2, numbers_of, remove, settle_at, spawn
from sf.envs.rts.engine.units import BASE, RESOURCE, TOWER, WORKER

IDLE, MOVE, ATTACK, GATHER, BUILD, MAKE, RISE, HIT_AND_RUN, GET_FLAG, GO_HOME, GUARD, RUN_THROUGH = map(
    np.int64, range(12)
)

TOUCH = 0.75  # cells between centres, at which a worker reaches a mine, a base or a building site
LOAD = 20  # minerals that a worker carries
MINING = 50  # ticks that it takes to mine them
PATIENCE = 60  # ticks that a unit is in the way of another before that gives up
_JUST, _LATELY = np.int64(2), np.int64(20)  # ticks since a hit
_WARY = 1.5  # cells more than the reach of an enemy, at which one who hits and runs does run
_RING = ((0.6, 0.0), (0.45, 0.45), (0.0, 0.6), (-0.45, 0.45), (-0.6, 0.0), (-0.45, -0.45), (0.0, -0.6), (0.45, -0.45))


@inner
def obey(world, i):
    """One tick of what unit i has been told."""
    unit = world.units[i]
    if unit.ready_in > 0:
        unit.ready_in -= 1
    order = unit.order
    if order == IDLE:
        _idle(world, i)
    elif order == ATTACK:
        _attack(world, i)
    elif order == GATHER:
        _gather(world, i)
    elif order == MOVE:
        _move(world, i)
    elif order == HIT_AND_RUN:
        _hit_and_run(world, i)
    elif order == MAKE:
        _make(world, i)
    elif order == BUILD:
        _build(world, i)
    elif order == RISE:
        _rise(world, i)
    elif order == GET_FLAG:
        _get_flag(world, i)
    elif order == GO_HOME:
        player = world.players[unit.owner]
        walk(world, i, player.home_x, player.home_y)
    elif order == GUARD:
        _guard(world, i)
    elif order == RUN_THROUGH:
        walk_downhill(world, i)


@inner
def order(world, i, what):
    unit = world.units[i]
    unit.order, unit.stuck, unit.timer = what, 0, 0


@inner
def order_to(world, i, what, x, y):
    """For MOVE: to a place."""
    order(world, i, what)
    world.units[i].to_x, world.units[i].to_y = x, y


@inner
def order_at(world, i, what, target):
    """For ATTACK and GATHER: a unit. Goes on with what it does where that is the same."""
    unit = world.units[i]
    if unit.order == what and unit.target == target and unit.target_serial == world.units[target].serial:
        return
    order(world, i, what)
    unit.target, unit.target_serial = target, world.units[target].serial


@inner
def order_making(world, i, kind):
    """A building begins to make a unit, which is paid at once. False where minerals do not suffice."""
    if not _pay(world, world.units[i].owner, kind):
        return False
    order(world, i, MAKE)
    world.units[i].making, world.units[i].timer = kind, world.kinds[kind].build_ticks
    return True


@inner
def order_building(world, i, kind, x, y):
    """A worker goes to a place, and pays and puts up a building there."""
    order_to(world, i, BUILD, x, y)
    world.units[i].making = kind


@inner
def has_target(world, i):
    target = world.units[i].target
    if target < 0:
        return False
    return world.units[target].alive == 1 and world.units[target].serial == world.units[i].target_serial


@inner
def nearest(world, i, owner, within):
    """The unit of an owner with the least distance from unit i, up to `within`; -1: none is there."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def nearest_of(world, i, owner, kind, within):
    """`nearest` of one kind."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive and world.units[j].kind == kind:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def nearest_troop(world, i, owner, within):
    """`nearest` of those that fight."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive and world.kinds[world.units[j].kind].is_troop:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def gather(world, i):
    """A worker goes to the nearest mine, or has nothing to do."""
    mine = nearest_of(world, i, NEUTRAL, RESOURCE, 4.0 * world.game.half)
    if mine < 0 and world.units[i].load == 0:
        order(world, i, IDLE)
    elif mine >= 0:
        order_at(world, i, GATHER, mine)


@inner
def _pay(world, owner, kind):
    player, cost = world.players[owner], world.kinds[kind].cost
    if player.minerals < cost:
        return False
    player.minerals -= cost
    player.spent += cost
    return True


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


@inner
def _idle(world, i):
    """A troop hits back; a tower shoots."""
    unit = world.units[i]
    if unit.kind == TOWER:
        if unit.ready_in == 0:
            foe = nearest(world, i, 1 - unit.owner, world.kinds[TOWER].reach)
            if foe >= 0:
                _hit(world, i, foe)
    elif world.kinds[unit.kind].is_troop and hit_lately(world, i, _JUST):
        order_at(world, i, ATTACK, unit.hit_by)


@inner
def hit_lately(world, i, ticks):
    """Whether unit i was hit within so many ticks, by a unit that is still there."""
    unit = world.units[i]
    if unit.hit_by < 0 or unit.hit_tick < world.game.tick - ticks:
        return False
    return world.units[unit.hit_by].alive == 1 and world.units[unit.hit_by].serial == unit.hit_by_serial


@inner
def _attack(world, i):
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
def _move(world, i):
    unit = world.units[i]
    arrived = unit.x == unit.to_x and unit.y == unit.to_y
    if arrived or unit.stuck > PATIENCE:
        order(world, i, IDLE)
    else:
        walk(world, i, unit.to_x, unit.to_y)


@inner
def _gather(world, i):
    unit = world.units[i]
    if unit.load > 0:
        base = nearest_of(world, i, unit.owner, BASE, 4.0 * world.game.half)
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
def _build(world, i):
    unit = world.units[i]
    dx, dy = unit.to_x - unit.x, unit.to_y - unit.y
    if dx * dx + dy * dy > TOUCH * TOUCH:
        walk(world, i, unit.to_x, unit.to_y)
        if unit.stuck > PATIENCE:
            gather(world, i)
        return
    if world.players[unit.owner].minerals >= world.kinds[unit.making].cost:
        building = spawn(world, unit.owner, unit.making, unit.to_x, unit.to_y)
        if building < 0 and unit.stuck <= PATIENCE:  # somebody stands there, or the worker itself
            unit.stuck += 1
            walk(world, i, 2.0 * unit.x - unit.to_x + dy, 2.0 * unit.y - unit.to_y - dx)
            return
        if building >= 0:
            _pay(world, unit.owner, unit.making)
            order(world, building, RISE)
            world.units[building].timer = world.kinds[unit.making].build_ticks
    gather(world, i)


@inner
def _rise(world, i):
    """A building is there from the beginning, and of use after a while."""
    unit = world.units[i]
    unit.timer -= 1
    if unit.timer <= 0:
        order(world, i, IDLE)


@inner
def _make(world, i):
    unit = world.units[i]
    unit.timer -= 1
    if unit.timer > 0:
        return
    made = spawn_beside(world, i, unit.making)
    if made >= 0:
        order(world, i, IDLE)
        if world.units[made].kind == WORKER:
            gather(world, made)


@inner
def spawn_beside(world, i, kind):
    """The number of a new unit next to unit i, or -1 where there is no room for it."""
    unit = world.units[i]
    side = 1.0 - 2.0 * unit.owner  # what player 1 does is the mirror image of what player 0 does
    for ring in range(1, 4):
        for x, y in _RING:
            made = spawn(world, unit.owner, kind, unit.x + side * ring * x, unit.y + side * ring * y)
            if made >= 0:
                return made
    return -1


@inner
def settle_beside(world, i, j, kind):
    """Make the dead unit j a new one next to unit i. False where there is no room for it."""
    unit = world.units[i]
    side = 1.0 - 2.0 * unit.owner
    for ring in range(1, 4):
        for x, y in _RING:
            if settle_at(world, j, unit.owner, kind, unit.x + side * ring * x, unit.y + side * ring * y):
                return True
    return False


@inner
def _hit_and_run(world, i):
    """Go to the enemy's base, shoot at what is in range, and run from who comes near until the next shot is ready."""
    unit = world.units[i]
    enemy, kind = 1 - unit.owner, world.kinds[unit.kind]
    threat = nearest_troop(world, i, enemy, kind.sight)
    if threat >= 0 and unit.ready_in > 0:
        other = world.units[threat]
        reach = world.kinds[other.kind].reach
        if reach < kind.reach and distance2(unit, other) < (reach + _WARY) * (reach + _WARY):
            walk(world, i, 2.0 * unit.x - other.x, 2.0 * unit.y - other.y)
            return
    if threat < 0 or distance2(unit, world.units[threat]) > kind.reach * kind.reach:
        threat = nearest(world, i, enemy, kind.reach)
    if threat >= 0:
        _hit_if_ready(world, i, threat)
    else:
        walk(world, i, world.players[enemy].home_x, world.players[enemy].home_y)


@inner
def _get_flag(world, i):
    """Go to the flag, and take it where nobody has it."""
    flag = NEUTRAL * world.game.room
    if distance2(world.units[i], world.units[flag]) > TOUCH * TOUCH:
        walk(world, i, world.units[flag].x, world.units[flag].y)
    elif world.game.carrier < 0:
        world.game.carrier = i
        order(world, i, GO_HOME)


@inner
def _guard(world, i):
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
    elif carrier >= 0 and carrier != i and world.units[carrier].owner == unit.owner:
        if distance2(unit, world.units[carrier]) > 1.0:
            walk(world, i, world.units[carrier].x, world.units[carrier].y)
