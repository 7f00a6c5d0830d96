"""Orders of single units, and how they are given.

An order lasts until what it is for has happened. What it does in a tick is in `sf.envs.rts.engine.obeying`.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.places import nearest, numbers_of
from sf.envs.rts.engine.state import NEUTRAL, inner
from sf.envs.rts.engine.units import RESOURCE

IDLE, MOVE, ATTACK, HIT_AND_RUN = map(np.int64, range(4))
GATHER, BUILD, MAKE, RISE = map(np.int64, range(4, 8))
GET_FLAG, GO_HOME, GUARD, RUN_THROUGH = map(np.int64, range(8, 12))


@inner
def order(world, i, what):
    unit = world.units[i]
    unit.order, unit.stuck, unit.timer = what, 0, 0


@inner
def order_to(world, i, what, x, y):
    """Give an order with a place: MOVE or BUILD."""
    order(world, i, what)
    world.units[i].to_x, world.units[i].to_y = x, y


@inner
def order_at(world, i, what, target):
    """Give an order with a target: ATTACK or GATHER. A unit that has it already goes on."""
    unit = world.units[i]
    if unit.order == what and unit.target == target and unit.target_serial == world.units[target].serial:
        return
    order(world, i, what)
    unit.target, unit.target_serial = target, world.units[target].serial


@inner
def order_making(world, i, kind):
    """A building begins to make a unit, which is paid at once, where minerals and room suffice."""
    unit = world.units[i]
    if can_afford(world, unit.owner, kind):
        pay(world, unit.owner, kind)
        order(world, i, MAKE)
        unit.making, unit.timer = kind, world.kinds[kind].build_ticks


@inner
def order_building(world, i, kind, x, y):
    """A worker goes to a place, and pays and puts up a building there."""
    order_to(world, i, BUILD, x, y)
    world.units[i].making = kind


@inner
def gather(world, i):
    """A worker goes to the nearest mine. Where there is none, it brings home what it carries, or has nothing to do."""
    mine = nearest(world, i, NEUTRAL, RESOURCE, 4.0 * world.game.half)
    if mine >= 0:
        order_at(world, i, GATHER, mine)
    elif world.units[i].load > 0:
        order(world, i, GATHER)
        world.units[i].target = -1
    else:
        order(world, i, IDLE)


@inner
def has_room(world, owner):
    """Returns whether the owner may have one more unit than those that are there or being made."""
    num = 0
    for i in numbers_of(world, owner):
        if world.units[i].alive:
            num += 2 if world.units[i].order == MAKE else 1
    return num < world.game.room


@inner
def can_afford(world, owner, kind):
    """Returns whether the owner has minerals and room for one more unit of a kind."""
    return world.players[owner].minerals >= world.kinds[kind].cost and has_room(world, owner)


@inner
def pay(world, owner, kind):
    player, cost = world.players[owner], world.kinds[kind].cost
    player.minerals -= cost
    player.spent += cost


@inner
def has_target(world, i):
    target = world.units[i].target
    if target < 0:
        return False
    return world.units[target].alive == 1 and world.units[target].serial == world.units[i].target_serial
