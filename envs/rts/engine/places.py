"""Keeps units on the map and apart from each other, moves them, and finds the nearest one and who sees it."""

from __future__ import annotations

import math

import numpy as np

from sf.envs.rts.engine.state import NOBODY, WALL, inner
from sf.envs.rts.engine.units import RADIUS

ANY, TROOP = np.int64(-1), np.int64(-2)  # in the place of a kind

_CLOSEST = 4 * RADIUS * RADIUS
_HALF = math.sqrt(0.5)
_LADEN = 0.6  # of its speed, that a unit with the flag has
_RING = ((0.6, 0.0), (0.45, 0.45), (0.0, 0.6), (-0.45, 0.45), (-0.6, 0.0), (-0.45, -0.45), (0.0, -0.6), (0.45, -0.45))


@inner
def column_of(world, x):
    """Returns the row or column of the cell that a coordinate is in."""
    size = world.cells.shape[0]
    return min(max(int(x + world.game.half), 0), size - 1)


@inner
def is_free(world, x, y, but):
    """Returns whether a unit can be there: on the map, on no wall, and in no other unit than `but`."""
    edge = world.game.half - RADIUS
    if not (-edge <= x <= edge and -edge <= y <= edge):
        return False
    if world.ground[column_of(world, y), column_of(world, x)] == WALL:
        return False
    left, right = column_of(world, x - 2 * RADIUS), column_of(world, x + 2 * RADIUS)
    for row in range(column_of(world, y - 2 * RADIUS), column_of(world, y + 2 * RADIUS) + 1):
        for column in range(left, right + 1):
            i = world.cells[row, column]
            while i >= 0:
                other = world.units[i]
                dx, dy = other.x - x, other.y - y
                if i != but and dx * dx + dy * dy < _CLOSEST:
                    return False
                i = other.next
    return True


@inner
def put(world, i, x, y):
    """Bring unit i there, which is free."""
    unit = world.units[i]
    unit.x, unit.y = x, y
    if world.kinds[unit.kind].has_body:
        row, column = column_of(world, y), column_of(world, x)
        unit.next = world.cells[row, column]
        world.cells[row, column] = i


@inner
def take(world, i):
    """Take unit i off the map."""
    unit = world.units[i]
    if not world.kinds[unit.kind].has_body:
        return
    row, column = column_of(world, unit.y), column_of(world, unit.x)
    j = world.cells[row, column]
    if j == i:
        world.cells[row, column] = unit.next
        return
    while world.units[j].next != i:
        j = world.units[j].next
    world.units[j].next = unit.next


@inner
def spawn(world, owner, kind, x, y):
    """Returns the number of a new unit there, or -1 where the owner has no room or the place is not free."""
    i = _free_number(world, owner)
    return i if i >= 0 and settle_at(world, i, owner, kind, x, y) else -1


@inner
def _free_number(world, owner):
    first = owner * world.game.room
    i = first
    while i < first + world.players[owner].num and world.units[i].alive:
        i += 1
    return i if i < first + world.game.room else -1


@inner
def settle_at(world, i, owner, kind, x, y):
    """Make the dead unit i a new one there. False where the place is not free."""
    if world.kinds[kind].has_body and not is_free(world, x, y, NOBODY):
        return False
    player, unit = world.players[owner], world.units[i]
    player.num = max(player.num, i - owner * world.game.room + 1)
    unit.kind, unit.owner, unit.alive, unit.hp, unit.damage = kind, owner, 1, world.kinds[kind].hp, 0
    unit.order, unit.target, unit.target_serial, unit.hit_by, unit.hit_by_serial, unit.hit_tick = 0, -1, 0, -1, 0, 0
    unit.timer, unit.ready_in, unit.load, unit.making, unit.side, unit.stuck, unit.seen = 0, 0, 0, -1, 1, 0, 0
    unit.to_x, unit.to_y = x, y
    unit.serial = world.game.next_serial
    world.game.next_serial += 1
    put(world, i, x, y)
    return True


@inner
def spawn_beside(world, i, kind):
    """Returns the number of a new unit next to unit i, or -1 where there is no room for it."""
    j = _free_number(world, world.units[i].owner)
    return j if j >= 0 and settle_beside(world, i, j, kind) else -1


@inner
def settle_beside(world, i, j, kind):
    """Make the dead unit j a new one next to unit i. False where there is no room for it."""
    unit = world.units[i]
    side = 1.0 - 2.0 * unit.owner  # what player 1 does is the mirror image of what player 0 does
    for ring in range(1, 4):
        for x, y in _RING:
            if settle_at(world, j, unit.owner, kind, unit.x + side * ring * x, unit.y + side * ring * y):
                return True
    return False


@inner
def remove(world, i):
    """Take unit i out of the game."""
    take(world, i)
    world.units[i].alive = 0
    player = world.players[world.units[i].owner]
    player.lost += world.units[i].load
    world.units[i].load = 0
    first = world.units[i].owner * world.game.room
    while player.num > 0 and not world.units[first + player.num - 1].alive:
        player.num -= 1


@inner
def numbers_of(world, owner):
    """Returns the numbers of the units of an owner, dead ones among them."""
    first = owner * world.game.room
    return range(first, first + world.players[owner].num)


@inner
def distance2(a, b):
    """Returns the square of the distance of two units."""
    dx, dy = a.x - b.x, a.y - b.y
    return dx * dx + dy * dy


@inner
def nearest(world, i, owner, kind, within):
    """Returns the unit of an owner and a kind (or ANY, or TROOP) that is nearest to unit i, up to `within`, or -1."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        unit = world.units[j]
        if unit.alive and (kind in (ANY, unit.kind) or (kind == TROOP and world.kinds[unit.kind].is_troop)):
            d = distance2(world.units[i], unit)
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def look(world, viewer):
    """Note at each unit of others whether the player sees it, as bit `viewer` of `seen`."""
    for owner in range(3):
        if owner != viewer:
            for i in numbers_of(world, owner):
                unit = world.units[i]
                unit.seen &= ~(1 << viewer)
                if unit.alive and sees(world, viewer, unit):
                    unit.seen |= 1 << viewer


@inner
def sees(world, viewer, unit):
    for j in numbers_of(world, viewer):
        eye = world.units[j]
        sight = world.kinds[eye.kind].sight
        if eye.alive and distance2(eye, unit) <= sight * sight:
            return True
    return False


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
