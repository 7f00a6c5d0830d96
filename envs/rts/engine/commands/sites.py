"""Where towers may stand, and the command to put one up."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.places import column_of, spawn
from sf.envs.rts.engine.units import TOWER


@inner
def tower_at(world, owner, site):
    player, cost = world.players[owner], world.kinds[TOWER].cost
    found, x, y = place_at(world, site)
    if player.minerals >= cost and found:
        row, column = column_of(world, y), column_of(world, x)
        ground = world.ground[row, column]
        world.ground[row, column] = 0  # towers stand on walls
        tower = spawn(world, owner, TOWER, x, y)
        world.ground[row, column] = ground
        if tower >= 0:
            player.minerals -= cost
            player.spent += cost


@inner
def place_at(world, site):
    """(whether there is one, x, y): the free wall in a site's 5 x 5 cells that is nearest to their middle."""
    centre_x, centre_y = site_centre(world, site)
    half, reach = world.game.half, int(world.game.half / 4.0)
    row, column = column_of(world, centre_y), column_of(world, centre_x)
    best, best_x, best_y = 1e9, 0.0, 0.0
    for r in range(max(row - reach, 0), min(row + reach + 1, len(world.ground))):
        for c in range(max(column - reach, 0), min(column + reach + 1, len(world.ground))):
            x, y = c + 0.5 - half, r + 0.5 - half
            d = (x - centre_x) * (x - centre_x) + (y - centre_y) * (y - centre_y)
            if d < best and world.ground[r, c] < 0 and world.cells[r, c] < 0:
                best, best_x, best_y = d, x, y
    return best < 1e9, best_x, best_y


@inner
def site_centre(world, site):
    """Sites are four in each of four rows, from the base at the upper left on."""
    half = world.game.half
    quarter = half / 2.0
    return -half + quarter * (site % 4 + 0.5), half - quarter * (site // 4 + 0.5)
