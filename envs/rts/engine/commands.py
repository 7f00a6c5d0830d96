"""Commands to a whole side, which become orders of its units. A new command is a name, a function, and its line in
`command`.

Commands of Mini-RTS follow table 11 of the ELF paper, those of Capture the Flag table 12. In Tower Defense command
1 + s puts up a tower at site s.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders import giving as orders
from sf.envs.rts.engine.orders.giving import GO_HOME, has_room, order, order_at, order_building, order_making
from sf.envs.rts.engine.places import column_of, is_free, numbers_of, spawn
from sf.envs.rts.engine.state import FLAG, TOWERS
from sf.envs.rts.engine.troops import ANY, attack, attack_in_range, defend, hit_and_run, workers_attack
from sf.envs.rts.engine.units import ATHLETE, BARRACKS, MELEE, RANGE, TOWER, WORKER

COMMANDS = (
    "idle",
    "build_worker",
    "build_barracks",
    "build_melee_attacker",
    "build_range_attacker",
    "hit_and_run",
    "attack",
    "attack_in_range",
    "all_defend",
)
FLAG_COMMANDS = ("idle", "get_flag", "escort_flag", "attack", "defend")
NUM_SITES = 16  # of towers
TOWER_COMMANDS = ("idle", *(f"tower_at_site_{site}" for site in range(NUM_SITES)))

# Who is told: all athletes, or all but the one with the flag.
ALL, OTHERS = np.int64(0), np.int64(1)
_PLACES = ((0.0, 1.0), (0.7, 0.7), (1.0, 0.0), (0.7, -0.7), (0.0, -1.0), (-0.7, -0.7), (-1.0, 0.0), (-0.7, 0.7))


@inner
def command(world, owner, what):
    """Carry out a command of the game that is played. What cannot be done is not done."""
    if world.game.rules == FLAG:
        command_athletes(world, owner, what, ALL)
    elif world.game.rules == TOWERS:
        if what > 0:
            tower_at(world, owner, what - 1)
    elif what == 1:
        make(world, owner, WORKER)
    elif what == 2:
        build(world, owner, BARRACKS)
    elif what == 3:
        make(world, owner, MELEE)
    elif what == 4:
        make(world, owner, RANGE)
    elif what == 5:
        hit_and_run(world, owner, RANGE)
    elif what == 6:
        attack(world, owner, ANY)
    elif what == 7:
        attack_in_range(world, owner, ANY)
    elif what == 8:
        defend(world, owner, ANY)


@inner
def command_kinds(world, owner, choices):
    """Carry out a command for each kind of unit, `choices` [H]; 0 changes nothing. See `sf.envs.rts.controls`."""
    if world.game.rules == FLAG:
        if choices[0] == 1 and world.game.carrier >= 0 and world.units[world.game.carrier].owner == owner:
            order(world, world.game.carrier, GO_HOME)
        command_athletes(world, owner, choices[1], OTHERS)
        return
    if choices[0] == 1:
        make(world, owner, WORKER)
    if choices[1] == 1:
        build(world, owner, BARRACKS)
    elif choices[1] == 2:
        workers_attack(world, owner)
    made, head = 0, 3
    for kind in range(len(world.kinds)):
        if world.kinds[kind].made_by != BARRACKS:
            continue
        made += 1
        if choices[2] == made:
            make(world, owner, kind)
        if choices[head] == 1:
            attack(world, owner, kind)
        elif choices[head] == 2:
            attack_in_range(world, owner, kind)
        elif choices[head] == 3:
            defend(world, owner, kind)
        elif choices[head] == 4:
            hit_and_run(world, owner, kind)
        head += 1


@inner
def command_athletes(world, owner, what, of_whom):
    """Carry out one of FLAG_COMMANDS. The athlete with the flag goes on with it unless it is told to go home."""
    carrier = world.game.carrier
    is_ours = carrier >= 0 and world.units[carrier].owner == owner
    for i in numbers_of(world, owner):
        unit = world.units[i]
        if not unit.alive or unit.kind != ATHLETE or (i == carrier and not (of_whom == ALL and what == 2)):
            continue
        if what == 1 and unit.order != orders.GET_FLAG:
            order(world, i, orders.GET_FLAG)
        elif what == 2 and i == carrier:
            order(world, i, orders.GO_HOME)
        elif what == 3 and carrier >= 0 and not is_ours:
            order_at(world, i, orders.ATTACK, carrier)
        elif what == 4 and unit.order != orders.GUARD:
            order(world, i, orders.GUARD)


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
    """Returns a worker that could put up a building now; -1 where there is none, or one is on its way to do so."""
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
    """Returns a building that can make this kind now, or -1."""
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
    """Returns (whether there is one, x, y): the free wall in a site's 5 x 5 cells that is nearest to their middle."""
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
    """Returns the middle of a site. There are four in each of four rows, from the base at the upper left on."""
    half = world.game.half
    quarter = half / 2.0
    return -half + quarter * (site % 4 + 0.5), half - quarter * (site // 4 + 0.5)
