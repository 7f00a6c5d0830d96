"""Orders of workers and buildings: gather, build, make units."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.movement import walk
from sf.envs.rts.engine.orders.finding import nearest_of
from sf.envs.rts.engine.orders.giving import IDLE, RISE, gather, has_room, has_target, order, pay
from sf.envs.rts.engine.places import distance2, remove, settle_at, spawn
from sf.envs.rts.engine.units import BASE, WORKER

TOUCH = 0.75  # cells between centres, at which a worker reaches a mine, a base or a building site
LOAD = 20  # minerals that a worker carries
MINING = 50  # ticks that it takes to mine them
PATIENCE = 60  # ticks in which a unit cannot move, or comes no nearer to where it was sent, before it gives up
_RING = ((0.6, 0.0), (0.45, 0.45), (0.0, 0.6), (-0.45, 0.45), (-0.6, 0.0), (-0.45, -0.45), (0.0, -0.6), (0.45, -0.45))


@inner
def gather_step(world, i):
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
def build_step(world, i):
    unit = world.units[i]
    dx, dy = unit.to_x - unit.x, unit.to_y - unit.y
    if dx * dx + dy * dy > TOUCH * TOUCH:
        walk(world, i, unit.to_x, unit.to_y)
        if unit.stuck > PATIENCE:
            gather(world, i)
        return
    if has_room(world, unit.owner) and world.players[unit.owner].minerals >= world.kinds[unit.making].cost:
        building = spawn(world, unit.owner, unit.making, unit.to_x, unit.to_y)
        if building < 0 and unit.stuck <= PATIENCE:  # somebody stands there, or the worker itself
            unit.stuck += 1
            walk(world, i, 2.0 * unit.x - unit.to_x + dy, 2.0 * unit.y - unit.to_y - dx)
            return
        if building >= 0:
            pay(world, unit.owner, unit.making)
            order(world, building, RISE)
            world.units[building].timer = world.kinds[unit.making].build_ticks
    gather(world, i)


@inner
def rise_step(world, i):
    """A building is there from the beginning, and of use after a while."""
    unit = world.units[i]
    unit.timer -= 1
    if unit.timer <= 0:
        order(world, i, IDLE)


@inner
def make_step(world, i):
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
