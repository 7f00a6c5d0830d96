"""Games of strategy for tests: played by random commands of both sides, and seen from the other side."""

from __future__ import annotations

import numpy as np
from numba import njit

from sf.envs.rts.controls import controls
from sf.envs.rts.engine.places import is_free, put, take
from sf.envs.rts.engine.state import NEUTRAL, World
from sf.envs.rts.engine.units import MELEE, RANGE
from sf.envs.rts.games import Games
from sf.envs.rts.settings import Settings


def begun(seed: int, num_players: int = 2, **settings: object) -> Games:
    """One game at its beginning."""
    games = Games(Settings(**settings), [seed], num_players)  # type: ignore[arg-type]
    games.begin(np.ones(1, bool))
    return games


def random_choices(games: Games, rng: np.random.Generator) -> np.ndarray:
    """[1, P, H]"""
    sizes = controls(games.settings).head_sizes
    return rng.integers(0, sizes, (games.num, games.num_players, len(sizes)))


def wander(games: Games, num_decisions: int, seed: int, ticks: int = 50) -> None:
    """Play random commands."""
    rng = np.random.default_rng(seed)
    for _ in range(num_decisions):
        games.advance(random_choices(games, rng), ticks)


def alive(games: Games) -> np.ndarray:
    """The units of the first game."""
    return games.worlds.units[0][games.worlds.units[0]["alive"] == 1]


def of_kind(games: Games, kind: int, owner: int = 0) -> np.ndarray:
    """[U] bool, of the units of the first game: which are there and of this kind."""
    units = games.worlds.units[0]
    return (units["alive"] == 1) & (units["kind"] == kind) & (units["owner"] == owner)


def troops(games: Games, owner: int = 0) -> np.ndarray:
    """[U] bool"""
    return of_kind(games, MELEE, owner) | of_kind(games, RANGE, owner)


@njit
def _place(world, i, j, far):
    for n in range(64):
        x, y = world.units[j].x + far * np.cos(n / 10), world.units[j].y + far * np.sin(n / 10)
        if is_free(world, x, y, i):
            take(world, i)
            put(world, i, x, y)
            return True
    return False


def place(games: Games, i: int, j: int, far: float) -> None:
    """Bring unit i to a free place that is so far from unit j."""
    assert _place(World(*(array[0] for array in games.worlds[:-1]), games.worlds.kinds), i, j, far)


def mirrored(games: Games) -> Games:
    """The same game with the sides changed, turned by half a turn."""
    other = Games(games.settings, [1], games.num_players)
    other.restore(0, games.snapshot(0))
    game, players, units, cells = (array[0] for array in other.worlds[:4])
    room = games.settings.room
    number = np.r_[np.arange(room, 2 * room), np.arange(room), np.arange(2 * room, 3 * room)]  # of the mirror image
    players[[0, 1]] = players[[1, 0]]
    units[:] = units[number]
    for coordinate in ("home_x", "home_y"):
        players[coordinate] *= -1
    for coordinate in ("x", "y", "to_x", "to_y"):
        units[coordinate] *= -1
    for name in ("target", "hit_by"):
        units[name] = np.where(units[name] >= 0, number[units[name]], units[name])
    units["owner"] = np.where(units["owner"] == NEUTRAL, NEUTRAL, 1 - units["owner"])
    units["seen"] = (units["seen"] & 1) << 1 | units["seen"] >> 1
    game["first"] = 1 - game["first"]
    game["flag_share"] *= -1
    if game["carrier"] >= 0:
        game["carrier"] = number[game["carrier"]]
    if game["winner"] in (0, 1):
        game["winner"] = 1 - game["winner"]
    cells[:] = -1
    half = games.settings.size / 2
    for i, unit in enumerate(units):
        if unit["alive"] and games.worlds.kinds[unit["kind"]]["has_body"]:
            row, column = (int(np.clip(int(unit[axis] + half), 0, len(cells) - 1)) for axis in ("y", "x"))
            unit["next"], cells[row, column] = cells[row, column], i
    return other


def require_same(a: Games, b: Games) -> None:
    """Fails where the games differ in more than where the cells list their units."""
    for name in a.worlds.games.dtype.names:
        if name != "rng":
            assert a.worlds.games[name][0] == b.worlds.games[name][0], name
    for name in a.worlds.players.dtype.names:
        np.testing.assert_array_equal(a.worlds.players[name][0], b.worlds.players[name][0], name)
    is_there = a.worlds.units["alive"][0] == 1
    for name in set(a.worlds.units.dtype.names) - {"next"}:
        np.testing.assert_array_equal(a.worlds.units[name][0][is_there], b.worlds.units[name][0][is_there], name)
    np.testing.assert_array_equal(is_there, b.worlds.units["alive"][0] == 1)
