"""The state of a group of games, in flat arrays, and the few functions that create and remove units.

Coordinates are centred on the map: x and y go from -half to half, and a game seen from the other side is the one with
both negated, to the bit. Player 0 begins at the lower left, player 1 opposite; what belongs to nobody has owner 2.

A group of G games with room for U units of each owner:

games    [G]         GAME
players  [G, 3]      PLAYER
units    [G, 3 * U]  UNIT; those of owner o have the numbers o * U to o * U + players[o].num - 1, some of them dead
cells    [G, S, S]   the number of a unit in each cell of the map, or -1; `next` of a unit is another one in its cell
ground   [G, S, S]   0 where units can walk, WALL, and in Tower Defense how many cells it is to the base
kinds    [K]         KIND, `sf.envs.rts.engine.units`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sf.envs.rts.engine.inner import inner

from sf.envs.rts.engine.units import RADIUS

NEUTRAL = np.int64(2)  # the owner of what belongs to nobody
NOBODY = np.int64(-1)
TWO = np.int64(2)
DRAW = 2
WALL = -1
_CLOSEST = 4 * RADIUS * RADIUS

GAME = np.dtype(
    [
        ("rng", "u8"),
        ("half", "f8"),  # of the side of the map
        ("rules", "i8"),  # which game it is: `sf.envs.rts.engine.games.rules`
        ("tick", "i8"),
        ("max_ticks", "i8"),
        ("winner", "i8"),  # NOBODY so far, 0, 1 or DRAW
        ("first", "i8"),  # whose units move first in this tick; it changes every tick
        ("room", "i8"),  # U
        ("next_serial", "i8"),
        ("wave", "i8"),  # Tower Defense: how many have come
        ("to_come", "i8"),  # of the wave that comes
        ("carrier", "i8"),  # Capture the Flag: the unit with the flag, or -1
        ("flag_share", "f8"),  # where the flag is between the bases: -1 to 1, from player 1 to player 0
    ],
    align=True,
)
PLAYER = np.dtype(
    [
        ("rng", "u8"),
        ("home_x", "f8"),
        ("home_y", "f8"),
        ("reward", "f8"),  # since it was taken last
        ("ai", "i8"),  # who commands: `sf.envs.rts.engine.ais`
        ("frame_skip", "i8"),  # ticks from one command of the AI to the next
        ("phase", "i8"),
        ("num", "i8"),  # numbers of units in use, dead ones among them
        ("minerals", "i8"),
        ("spent", "i8"),
        ("lost", "i8"),  # minerals that were carried by workers that died
        ("score", "i8"),
        ("kills", "i8"),
        ("leaks", "i8"),
        ("commands", "i8"),  # how many have been given
    ],
    align=True,
)
UNIT = np.dtype(
    [
        ("x", "f8"),
        ("y", "f8"),
        ("to_x", "f8"),
        ("to_y", "f8"),
        ("hp", "i8"),  # of a mine: what is left in it
        ("damage", "i8"),  # of this tick
        ("kind", "i8"),
        ("owner", "i8"),
        ("order", "i8"),  # `sf.envs.rts.engine.orders`
        ("target", "i8"),  # the number of a unit
        ("target_serial", "i8"),
        ("hit_by", "i8"),  # the unit that has hit it last, or -1
        ("hit_by_serial", "i8"),
        ("hit_tick", "i8"),
        ("serial", "i8"),  # no other unit of the game has had it
        ("timer", "i8"),  # ticks until what it does is done
        ("ready_in", "i8"),  # ticks until the next hit
        ("load", "i8"),  # minerals that it carries
        ("making", "i8"),  # the kind that it makes
        ("next", "i8"),
        ("side", "i8"),  # on which it goes around what is in its way
        ("stuck", "i8"),  # ticks
        ("alive", "i8"),
        ("seen", "i8"),  # bits of the players that see it, when somebody looked last
    ],
    align=True,
)


class Worlds(NamedTuple):
    """All games of a group."""

    games: np.ndarray
    players: np.ndarray
    units: np.ndarray
    cells: np.ndarray
    ground: np.ndarray
    kinds: np.ndarray


class World(NamedTuple):
    """One game: a record, and arrays [3], [3 * U], [S, S], [S, S], [K]."""

    game: np.ndarray
    players: np.ndarray
    units: np.ndarray
    cells: np.ndarray
    ground: np.ndarray
    kinds: np.ndarray


def allocate(num_games: int, kinds: np.ndarray, size: int = 20, room: int = 64) -> Worlds:
    """size: of a side of the map, in cells. room: how many units an owner may have."""
    worlds = Worlds(
        games=np.zeros(num_games, GAME),
        players=np.zeros((num_games, 3), PLAYER),
        units=np.zeros((num_games, 3 * room), UNIT),
        cells=np.full((num_games, size, size), -1, np.int64),
        ground=np.zeros((num_games, size, size), np.int64),
        kinds=kinds,
    )
    worlds.games["half"] = size / 2
    worlds.games["room"] = room
    return worlds


@inner
def clear(world):
    """Remove all units, and begin at tick 0; random numbers go on."""
    game = world.game
    game.tick, game.winner, game.wave, game.to_come, game.carrier, game.flag_share = 0, NOBODY, 0, 0, -1, 0.0
    game.next_serial = 1
    game.first = below(game, TWO)
    world.cells[:] = -1
    world.ground[:] = 0
    for i in range(len(world.units)):
        world.units[i].alive = 0
    for p in range(3):
        player = world.players[p]
        player.num, player.minerals, player.spent, player.lost = 0, 0, 0, 0
        player.score, player.kills, player.leaks, player.commands, player.reward = 0, 0, 0, 0, 0.0
        player.rng = draw(game)


@inner
def draw(holder):
    """64 random bits, of a game or a player (splitmix64)."""
    holder.rng = holder.rng + np.uint64(0x9E3779B97F4A7C15)
    z = holder.rng
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def uniform(holder, low, high):
    return low + (high - low) * (np.float64(draw(holder) >> np.uint64(11)) * 2.0**-53)


@inner
def below(holder, n):
    """An integer from 0 to n - 1."""
    return int(uniform(holder, 0.0, np.float64(n)))


@inner
def column_of(world, x):
    """Of the cell that a coordinate lies in."""
    size = world.cells.shape[0]
    return min(max(int(x + world.game.half), 0), size - 1)


@inner
def is_free(world, x, y, but):
    """Whether a unit can be there: on the map, on no wall, and in no other unit than `but`."""
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
    """The number of a new unit there, or -1 where the owner has no room or the place is not free."""
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
def remove(world, i):
    """Unit i is no more."""
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
    """The numbers of the units of an owner, dead ones among them."""
    first = owner * world.game.room
    return range(first, first + world.players[owner].num)


@inner
def distance2(a, b):
    """The square of the distance of two units."""
    dx, dy = a.x - b.x, a.y - b.y
    return dx * dx + dy * dy
