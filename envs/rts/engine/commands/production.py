"""Commands to workers and buildings."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders import giving as orders
from sf.envs.rts.engine.orders.giving import has_room, order_building, order_making
from sf.envs.rts.engine.places import is_free, numbers_of
from sf.envs.rts.engine.units import WORKER

_PLACES = ((0.0, 1.0), (0.7, 0.7), (1.0, 0.0), (0.7, -0.7), (0.0, -1.0), (-0.7, -0.7), (-1.0, 0.0), (-0.7, 0.7))


@inner
def make(world, owner, kind):
    maker = idle_maker(world, owner, kind)
    if maker >= 0:
        order_making(world, maker, kind)


@inner
def build(world, owner, kind):
    """A worker puts up a building at the first free place around the base."""
    worker = builder(world, owner)
    if worker < 0 or not has_room(world, owner) or world.players[owner].minerals < world.kinds[kind].cost:
        return
    player = world.players[owner]
    side = 1.0 - 2.0 * owner
    for ring in range(2, 5):
        for x, y in _PLACES:
            at_x, at_y = player.home_x + side * ring * x, player.home_y + side * ring * y
            if is_free(world, at_x, at_y, worker):
                order_building(world, worker, kind, at_x, at_y)
                return


@inner
def builder(world, owner):
    """A worker that could put up a building now; -1 where there is none, or one is on its way to do so."""
    found = -1
    for i in numbers_of(world, owner):
        unit = world.units[i]
        if unit.alive and unit.kind == WORKER:
            if unit.order == orders.BUILD:
                return -1
            if found < 0 or (unit.load == 0 and world.units[found].load > 0):
                found = i
    return found


@inner
def idle_maker(world, owner, kind):
    """A building that can make this kind now, or -1."""
    for i in numbers_of(world, owner):
        unit = world.units[i]
        if unit.alive and unit.kind == world.kinds[kind].made_by and unit.order == orders.IDLE:
            return i
    return -1


@inner
def count(world, owner, kind):
    found = 0
    for i in numbers_of(world, owner):
        found += world.units[i].alive and world.units[i].kind == kind
    return found


@inner
def has_idle(world, owner, kind):
    for i in numbers_of(world, owner):
        unit = world.units[i]
        if unit.alive and unit.kind == kind and unit.order == orders.IDLE:
            return True
    return False
