"""Keeps units on the map, out of walls and apart from each other, and finds the nearest one and who sees it."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.state import NOBODY, WALL
from sf.envs.rts.engine.units import RADIUS

_CLOSEST = 4 * RADIUS * RADIUS
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
    first, player = owner * world.game.room, world.players[owner]
    i = first
    while i < first + player.num and world.units[i].alive:
        i += 1
    return i if i < first + world.game.room and settle_at(world, i, owner, kind, x, y) else -1


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
def nearest(world, i, owner, within):
    """Returns the unit of an owner with the least distance from unit i, up to `within`, or -1 without one."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def nearest_of(world, i, owner, kind, within):
    """Returns `nearest` among the units of one kind."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive and world.units[j].kind == kind:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def nearest_troop(world, i, owner, within):
    """Returns `nearest` among the units that fight."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive and world.kinds[world.units[j].kind].is_troop:
            d = distance2(world.units[i], world.units[j])
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
