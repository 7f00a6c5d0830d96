"""Commands to a whole side or to the troops of a kind, which become orders of units.

A new command is a name, a function, and its line in `command`. Commands of Mini-RTS follow table 11 of the ELF paper,
those of Capture the Flag table 12. In Tower Defense command 1 + s puts up a tower at site s. Where `kind` is ANY, a
command is for all troops.
"""

from __future__ import annotations

import math

import numpy as np

from sf.envs.rts.engine import orders
from sf.envs.rts.engine.orders import (
    GO_HOME,
    can_afford,
    gather,
    order,
    order_at,
    order_building,
    order_making,
    order_to,
)
from sf.envs.rts.engine.places import ANY, distance2, is_free, look, numbers_of
from sf.envs.rts.engine.state import FLAG, NEUTRAL, TOWERS, inner
from sf.envs.rts.engine.towers import NUM_SITES, tower_at
from sf.envs.rts.engine.units import ATHLETE, BARRACKS, BASE, MELEE, RANGE, RESOURCE, WORKER

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
TOWER_COMMANDS = ("idle", *(f"tower_at_site_{site}" for site in range(NUM_SITES)))

NEAR_HOME = 6.0  # cells: as far from the base is what threatens it, and half of that from a mine
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
    if worker < 0 or not can_afford(world, owner, kind):
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
def hit_and_run(world, owner, kind):
    for i in numbers_of(world, owner):
        if is_meant(world, i, kind) and world.units[i].order != orders.HIT_AND_RUN:
            order(world, i, orders.HIT_AND_RUN)


@inner
def attack(world, owner, kind):
    """Send all to the base of the enemy, whatever they meet."""
    for j in numbers_of(world, 1 - owner):
        if world.units[j].alive and world.units[j].kind == BASE:
            for i in numbers_of(world, owner):
                if is_meant(world, i, kind):
                    order_at(world, i, orders.ATTACK, j)
            return


@inner
def attack_in_range(world, owner, kind):
    """Each goes for the nearest enemy of those in sight."""
    look(world, owner)
    for i in numbers_of(world, owner):
        if is_meant(world, i, kind):
            j = _nearest_seen(world, i, 1 - owner)
            if j >= 0:
                order_at(world, i, orders.ATTACK, j)


@inner
def defend(world, owner, kind):
    """Each goes for the nearest enemy of those near the base or a mine of ours.

    Without one, those that are far from the base come back, but not into the way of its workers.
    """
    player = world.players[owner]
    for i in numbers_of(world, owner):
        if is_meant(world, i, kind):
            unit = world.units[i]
            best, foe = 1e9, -1
            for j in numbers_of(world, 1 - owner):
                other = world.units[j]
                if other.alive and world.kinds[other.kind].speed > 0.0 and _is_near_home(world, owner, j):
                    d = distance2(unit, other)
                    if d < best:
                        best, foe = d, j
            dx, dy = unit.x - player.home_x, unit.y - player.home_y
            if foe >= 0:
                order_at(world, i, orders.ATTACK, foe)
            elif dx * dx + dy * dy > NEAR_HOME * NEAR_HOME:
                part = NEAR_HOME / 2.0 / math.sqrt(dx * dx + dy * dy)
                order_to(world, i, orders.MOVE, player.home_x + part * dx, player.home_y + part * dy)
            elif unit.order != orders.IDLE:
                order(world, i, orders.IDLE)


@inner
def workers_attack(world, owner):
    look(world, owner)
    for i in numbers_of(world, owner):
        if world.units[i].alive and world.units[i].kind == WORKER and world.units[i].order != orders.BUILD:
            j = _nearest_seen(world, i, 1 - owner)
            if j >= 0:
                order_at(world, i, orders.ATTACK, j)
            elif world.units[i].order != orders.GATHER:
                gather(world, i)


@inner
def is_meant(world, i, kind):
    """Returns whether a command to all troops (`kind` -1) or to those of a kind is for unit i."""
    unit = world.units[i]
    return unit.alive == 1 and world.kinds[unit.kind].is_troop == 1 and kind in (ANY, unit.kind)


@inner
def _is_near_home(world, owner, j):
    """Returns whether unit j is near the player's base, or near a mine on the player's side of the map."""
    unit, player = world.units[j], world.players[owner]
    dx, dy = unit.x - player.home_x, unit.y - player.home_y
    if dx * dx + dy * dy <= NEAR_HOME * NEAR_HOME:
        return True
    for m in numbers_of(world, NEUTRAL):
        mine = world.units[m]
        is_ours = mine.alive and mine.kind == RESOURCE and mine.x * player.home_x + mine.y * player.home_y > 0.0
        if is_ours and distance2(unit, mine) <= NEAR_HOME * NEAR_HOME / 4.0:
            return True
    return False


@inner
def _nearest_seen(world, i, enemy):
    """Returns the nearest enemy that is seen, after `look`, or -1."""
    best, found = 1e9, -1
    for j in numbers_of(world, enemy):
        other = world.units[j]
        if other.alive and other.seen & (1 << (1 - enemy)):
            d = distance2(world.units[i], other)
            if d < best:
                best, found = d, j
    return found
