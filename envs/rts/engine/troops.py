"""Commands to all troops (`kind` ANY), or to those of one kind."""

from __future__ import annotations

import math

import numpy as np

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders import giving as orders
from sf.envs.rts.engine.orders.giving import gather, order, order_at, order_to
from sf.envs.rts.engine.places import distance2, look, numbers_of
from sf.envs.rts.engine.state import NEUTRAL
from sf.envs.rts.engine.units import BASE, RESOURCE, WORKER

ANY = np.int64(-1)
NEAR_HOME = 6.0  # cells: as far from the base is what threatens it, and half of that from a mine


@inner
def hit_and_run(world, owner, kind):
    for i in numbers_of(world, owner):
        if is_meant(world, i, kind) and world.units[i].order != orders.HIT_AND_RUN:
            order(world, i, orders.HIT_AND_RUN)


@inner
def attack(world, owner, kind):
    """All go for the base of the enemy, whatever they meet."""
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
                if (
                    world.units[j].alive
                    and world.kinds[world.units[j].kind].speed > 0.0
                    and _is_near_home(world, owner, j)
                ):
                    d = distance2(unit, world.units[j])
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
        if world.units[j].alive and world.units[j].seen & (1 << (1 - enemy)):
            d = distance2(world.units[i], world.units[j])
            if d < best:
                best, found = d, j
    return found
