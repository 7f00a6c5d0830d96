"""Mini-RTS: gather, build, and destroy the enemy's base."""

from __future__ import annotations

import math

import numpy as np

from sf.envs.rts.engine.orders import gather
from sf.envs.rts.engine.places import remove, spawn, spawn_beside
from sf.envs.rts.engine.state import DRAW, NEUTRAL, NOBODY, TWO, below, inner, uniform
from sf.envs.rts.engine.units import BARRACKS, BASE, MELEE, RANGE, RESOURCE, WORKER

_OURS, _THEIRS = np.int64(0), np.int64(1)
_NEAR = 2.5  # cells
_THREE = np.int64(3)
MINES = 2  # of each side


@inner
def begin(world, extra):
    """Both sides have the same in mirrored places, but for where their units stand.

    extra: more troops of each side, as far as the map has room for one of both.
    """
    game = world.game
    edge = game.half
    x, y = uniform(game, 2.0, 4.5) - edge, uniform(game, 2.0, 4.5) - edge
    for side in range(2):
        sign = 1.0 - 2.0 * side
        player = world.players[side]
        player.home_x, player.home_y = sign * x, sign * y
        spawn(world, side, BASE, sign * x, sign * y)
    for _ in range(MINES):
        placed = False
        while not placed:
            mine_x, mine_y = x + uniform(game, -1.5, 3.5), y + uniform(game, -1.5, 3.5)
            away = (mine_x - x) * (mine_x - x) + (mine_y - y) * (mine_y - y)
            if away > 1.8 * 1.8:
                placed = spawn(world, NEUTRAL, RESOURCE, mine_x, mine_y) >= 0
                placed = placed and spawn(world, NEUTRAL, RESOURCE, -mine_x, -mine_y) >= 0
    minerals = 100 + 50 * below(game, _THREE)
    num_workers = 1 + below(game, _THREE)
    has_barracks = uniform(game, 0.0, 1.0) < 0.2
    troop = MELEE if uniform(game, 0.0, 1.0) < 0.5 else RANGE
    num_troops = extra + (uniform(game, 0.0, 1.0) < 0.3)
    for side in range(2):
        world.players[side].minerals = minerals
        if has_barracks:
            _scatter(world, side, BARRACKS, _NEAR)
        for _ in range(num_workers):
            worker = _scatter(world, side, WORKER, _NEAR)
            if worker >= 0:
                gather(world, worker)
    reach = max(_NEAR, 0.5 * math.sqrt(num_troops))
    for n in range(num_troops):
        kind = troop if n == 0 else MELEE + n % 2
        first = _scatter(world, _OURS, kind, reach)
        if first < 0:
            break
        if _scatter(world, _THEIRS, kind, reach) < 0:
            remove(world, first)
            break


@inner
def _scatter(world, side, kind, reach):
    """A new unit within `reach` cells of the base in x and y, where the player's own random numbers say."""
    player = world.players[side]
    sign = 1.0 - 2.0 * side
    for _ in range(100):
        x = player.home_x + sign * uniform(player, -reach, reach)
        y = player.home_y + sign * uniform(player, -reach, reach)
        i = spawn(world, side, kind, x, y)
        if i >= 0:
            return i
    return spawn_beside(world, side * world.game.room, kind)


@inner
def judge(world):
    """A side without a base has lost. Nobody has won by the last tick, or where both lose theirs in one."""
    game = world.game
    lost_0, lost_1 = _has_no_base(world, NOBODY + 1), _has_no_base(world, NOBODY + TWO)
    if lost_0 and lost_1:
        game.winner = DRAW
    elif lost_0 or lost_1:
        game.winner = 1 if lost_0 else 0
    elif game.tick >= game.max_ticks:
        game.winner = DRAW
    if 0 <= game.winner < DRAW:
        world.players[game.winner].reward += 1.0
        world.players[1 - game.winner].reward -= 1.0


@inner
def _has_no_base(world, side):
    base = world.units[side * world.game.room]  # the first unit; no other has its number while it is there
    return not base.alive or base.kind != BASE
