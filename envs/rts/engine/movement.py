"""Walking: a tick towards a place, around what is in the way."""

from __future__ import annotations

import math

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.places import column_of, is_free, put, take
from sf.envs.rts.engine.state import WALL

_HALF = math.sqrt(0.5)
_LADEN = 0.6  # of its speed, that a unit with the flag has


@inner
def walk(world, i, x, y):
    """Unit i makes a step towards (x, y), or to the side where that is not free. Returns whether it has moved."""
    unit = world.units[i]
    speed = world.kinds[unit.kind].speed
    if world.game.carrier == i:
        speed *= _LADEN
    dx, dy = x - unit.x, y - unit.y
    length = math.sqrt(dx * dx + dy * dy)
    if length == 0.0 or speed == 0.0:
        return False
    if length <= speed:
        if _go(world, i, x, y):
            return True
    else:
        dx, dy = dx * (speed / length), dy * (speed / length)
        if _go(world, i, unit.x + dx, unit.y + dy):
            return True
    side = unit.side
    for _n in range(2):  # turned by 45 degrees to the side on which it went around last, then to the other one
        if _go(world, i, unit.x + _HALF * (dx - side * dy), unit.y + _HALF * (dy + side * dx)):
            unit.side = side
            return True
        side = -side
    for _ in range(2):  # by 90 degrees
        if _go(world, i, unit.x - side * dy, unit.y + side * dx):
            unit.side = side
            return True
        side = -side
    unit.stuck += 1
    return False


@inner
def _go(world, i, x, y):
    if not is_free(world, x, y, i):
        return False
    unit = world.units[i]
    if column_of(world, x) == column_of(world, unit.x) and column_of(world, y) == column_of(world, unit.y):
        unit.x, unit.y = x, y
    else:
        take(world, i)
        put(world, i, x, y)
    return True


@inner
def walk_downhill(world, i):
    """A step towards the neighbouring cell from which the way to the base is the shortest."""
    unit, ground = world.units[i], world.ground
    size = ground.shape[0]
    row, column = column_of(world, unit.y), column_of(world, unit.x)
    best_row, best_column, best = row, column, ground[row, column]
    for turn in range(4):
        r = row + (turn == 0) - (turn == 1)
        c = column + (turn == 2) - (turn == 3)
        if 0 <= r < size and 0 <= c < size and ground[r, c] != WALL and ground[r, c] < best:
            best_row, best_column, best = r, c, ground[r, c]
    half = world.game.half
    return walk(world, i, best_column + 0.5 - half, best_row + 0.5 - half)
