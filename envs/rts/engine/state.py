"""The state of a group of games, in flat arrays, and how the functions that change it are compiled.

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

from typing import Any, NamedTuple

import numpy as np
from numba import njit

# Without what Python would need to call them, which takes most of the time of compiling them.
# Nor is memory counted, since nothing is allocated: that doubles the speed.
_OPTIONS: dict[str, Any] = {
    "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False,
}  # fmt: skip
inner = njit(**_OPTIONS)


NEUTRAL = np.int64(2)  # the owner of what belongs to nobody
NOBODY = np.int64(-1)
TWO = np.int64(2)
DRAW = 2
WALL = -1
MINI, FLAG, TOWERS = range(3)
"""The games, by number."""

GAME = np.dtype(
    [
        ("rng", "u8"),
        ("half", "f8"),  # of the side of the map
        ("rules", "i8"),  # which game it is: MINI, FLAG or TOWERS
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
        ("num", "i8"),  # numbers of units in use, dead ones among them
        ("minerals", "i8"),
        ("spent", "i8"),
        ("lost", "i8"),  # minerals that were carried by workers that died
        ("score", "i8"),
        ("kills", "i8"),
        ("leaks", "i8"),
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
    """Holds all games of a group."""

    games: np.ndarray
    players: np.ndarray
    units: np.ndarray
    cells: np.ndarray
    ground: np.ndarray
    kinds: np.ndarray


class World(NamedTuple):
    """One game: a record, and arrays [3], [3 * U], [S, S], [S, S], [K]."""

    game: Any
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
        player.score, player.kills, player.leaks, player.reward = 0, 0, 0, 0.0
        player.rng = draw(game)


@inner
def draw(holder):
    """Returns 64 random bits of a game or of a player (splitmix64), whose state holds the generator."""
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
    """Returns an integer from 0 to n - 1."""
    return int(uniform(holder, 0.0, np.float64(n)))
