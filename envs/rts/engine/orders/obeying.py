"""One tick of what a unit has been told. A new order is a constant, a function, and its line in `obey`."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.movement import walk, walk_downhill
from sf.envs.rts.engine.orders.economy import PATIENCE, TOUCH, build_step, gather_step, make_step, rise_step
from sf.envs.rts.engine.orders.fighting import attack_step, guard_step, hit_and_run_step, idle_step
from sf.envs.rts.engine.orders.giving import (
    ATTACK,
    BUILD,
    GATHER,
    GET_FLAG,
    GO_HOME,
    GUARD,
    HIT_AND_RUN,
    IDLE,
    MAKE,
    MOVE,
    RISE,
    RUN_THROUGH,
    order,
)
from sf.envs.rts.engine.places import distance2, is_free
from sf.envs.rts.engine.state import NEUTRAL


@inner
def obey(world, i):  # noqa: PLR0912  one line for each order
    """One tick of what unit i has been told."""
    unit = world.units[i]
    if unit.ready_in > 0:
        unit.ready_in -= 1
    told = unit.order
    if told == IDLE:
        idle_step(world, i)
    elif told == ATTACK:
        attack_step(world, i)
    elif told == GATHER:
        gather_step(world, i)
    elif told == MOVE:
        move_step(world, i)
    elif told == HIT_AND_RUN:
        hit_and_run_step(world, i)
    elif told == MAKE:
        make_step(world, i)
    elif told == BUILD:
        build_step(world, i)
    elif told == RISE:
        rise_step(world, i)
    elif told == GET_FLAG:
        get_flag_step(world, i)
    elif told == GO_HOME:
        player = world.players[unit.owner]
        walk(world, i, player.home_x, player.home_y)
    elif told == GUARD:
        guard_step(world, i)
    elif told == RUN_THROUGH:
        walk_downhill(world, i)


@inner
def move_step(world, i):
    """Go to a place, or up to what stands there. Whoever gets no nearer for too long stops where it is."""
    unit = world.units[i]
    left = _left(unit)
    arrived = left == 0.0 or (left <= TOUCH * TOUCH and not is_free(world, unit.to_x, unit.to_y, i))
    if arrived or unit.stuck > PATIENCE:
        order(world, i, IDLE)
    elif walk(world, i, unit.to_x, unit.to_y) and _left(unit) >= left:
        unit.stuck += 1


@inner
def _left(unit):
    """The square of the distance to the place where a unit is to go."""
    dx, dy = unit.to_x - unit.x, unit.to_y - unit.y
    return dx * dx + dy * dy


@inner
def get_flag_step(world, i):
    """Go to the flag, and take it where nobody has it."""
    flag = NEUTRAL * world.game.room
    if distance2(world.units[i], world.units[flag]) > TOUCH * TOUCH:
        walk(world, i, world.units[flag].x, world.units[flag].y)
    elif world.game.carrier < 0:
        world.game.carrier = i
        order(world, i, GO_HOME)
