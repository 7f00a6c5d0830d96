"""One tick of what a unit has been told. A new order is a constant, a function, and its line in `obey`."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.movement import walk, walk_downhill
from sf.envs.rts.engine.orders import giving as orders
from sf.envs.rts.engine.orders.fighting import attack_step, guard_step, hit_and_run_step, idle_step
from sf.envs.rts.engine.orders.giving import gather, has_room, has_target, order, pay
from sf.envs.rts.engine.places import distance2, is_free, nearest_of, remove, spawn, spawn_beside
from sf.envs.rts.engine.state import NEUTRAL
from sf.envs.rts.engine.units import BASE, WORKER

TOUCH = 0.75  # cells between centres, at which a worker reaches a mine, a base or a building site
LOAD = 20  # minerals that a worker carries
MINING = 50  # ticks that it takes to mine them
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
