"""Tower Defense: ten waves of runners come through a maze, and towers beside the way shoot at them.

A tower is put up on a wall, in one of 16 sites of 5 x 5 cells.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.orders import RUN_THROUGH, order, pay
from sf.envs.rts.engine.places import column_of, numbers_of, remove, spawn
from sf.envs.rts.engine.state import DRAW, TWO, WALL, below, inner
from sf.envs.rts.engine.units import BASE, RUNNER, TOWER

_OURS, _THEIRS = np.int64(0), np.int64(1)
WAVES = 10
TICKS_A_WAVE = 200
MOST_LEAKS = 10
PER_KILL = 10  # minerals: five kills are a tower
LEAK_PENALTY = 0.1
_BETWEEN = 6  # ticks from one runner of a wave to the next
NUM_SITES = 16  # of towers
_CORRIDOR, _THICK = 2, 2  # cells
_FREE = -2  # in `ground` while the way is measured


@inner
def begin(world):
    """Corridors from right to left and back, with gaps at random places between them; the base is at the upper left."""
    game, ground = world.game, world.ground
    size, half = len(ground), game.half
    ground[:] = _FREE
    side = below(game, TWO)
    for low in range(_CORRIDOR, size - _CORRIDOR, _CORRIDOR + _THICK):
        gap = below(game, size // 3)
        if side:
            gap = size - _CORRIDOR - gap
        side = 1 - side
        ground[low : low + _THICK] = WALL
        ground[low : low + _THICK, gap : gap + _CORRIDOR] = _FREE
    world.players[0].home_x, world.players[0].home_y = 0.5 - half, half - 0.5
    world.players[1].home_x, world.players[1].home_y = half - 0.5, 0.5 - half
    _measure(world, size - 1, 0)
    spawn(world, _OURS, BASE, 0.5 - half, half - 0.5)
    world.players[0].minerals = 100


@inner
def _measure(world, row, column):
    """Write into each cell of `ground` that is free how many cells it is to this one."""
    ground = world.ground
    size = len(ground)
    ground[row, column] = 0
    goes_on = True
    while goes_on:
        goes_on = False
        for r in range(size):
            for c in range(size):
                for turn in range(4):
                    from_r = r + (turn == 0) - (turn == 1)
                    from_c = c + (turn == 2) - (turn == 3)
                    if ground[r, c] == WALL or not (0 <= from_r < size and 0 <= from_c < size):
                        continue
                    way = ground[from_r, from_c] + 1
                    if way > 0 and (ground[r, c] == _FREE or ground[r, c] > way):
                        ground[r, c] = way
                        goes_on = True


@inner
def judge(world):
    """Each runner that gets through is paid for. Ten of them are a loss, ten waves survived a win; at the last tick
    nobody has won.
    """
    game, player = world.game, world.players[0]
    if game.tick % TICKS_A_WAVE == 1 and game.wave < WAVES:
        game.to_come += 4 + 2 * game.wave
        game.wave += 1
    if game.to_come > 0 and game.tick % _BETWEEN == 0:
        runner = spawn(world, _THEIRS, RUNNER, world.players[1].home_x, world.players[1].home_y)
        if runner >= 0:
            game.to_come -= 1
            order(world, runner, RUN_THROUGH)
    num_left = 0
    for i in numbers_of(world, _THEIRS):
        unit = world.units[i]
        if unit.alive:
            num_left += 1
            if world.ground[column_of(world, unit.y), column_of(world, unit.x)] <= 1:
                remove(world, i)
                player.leaks += 1
                player.reward -= LEAK_PENALTY
    if player.leaks >= MOST_LEAKS:
        game.winner = 1
    elif game.wave == WAVES and game.to_come == 0 and num_left == 0:
        game.winner = 0
        player.reward += 1.0
    elif game.tick >= game.max_ticks:
        game.winner = DRAW


@inner
def on_death(world, i):
    if world.units[i].kind == RUNNER:
        world.players[0].minerals += PER_KILL


@inner
def tower_at(world, owner, site):
    found, x, y = place_at(world, site)
    if found and world.players[owner].minerals >= world.kinds[TOWER].cost:
        row, column = column_of(world, y), column_of(world, x)
        ground = world.ground[row, column]
        world.ground[row, column] = 0  # towers stand on walls
        tower = spawn(world, owner, TOWER, x, y)
        world.ground[row, column] = ground
        if tower >= 0:
            pay(world, owner, TOWER)


@inner
def place_at(world, site):
    """Returns (whether there is one, x, y): the free wall in a site's 5 x 5 cells that is nearest to their middle."""
    half, quarter, reach = world.game.half, world.game.half / 2.0, int(world.game.half / 4.0)
    # There are four sites in each of four rows, from the base at the upper left on.
    centre_x, centre_y = -half + quarter * (site % 4 + 0.5), half - quarter * (site // 4 + 0.5)
    row, column = column_of(world, centre_y), column_of(world, centre_x)
    best, best_x, best_y = 1e9, 0.0, 0.0
    for r in range(max(row - reach, 0), min(row + reach + 1, len(world.ground))):
        for c in range(max(column - reach, 0), min(column + reach + 1, len(world.ground))):
            x, y = c + 0.5 - half, r + 0.5 - half
            d = (x - centre_x) * (x - centre_x) + (y - centre_y) * (y - centre_y)
            if d < best and world.ground[r, c] < 0 and world.cells[r, c] < 0:
                best, best_x, best_y = d, x, y
    return best < 1e9, best_x, best_y
