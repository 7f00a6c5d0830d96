"""The nearest unit of some sort."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.places import distance2, numbers_of


@inner
def nearest(world, i, owner, within):
    """The unit of an owner with the least distance from unit i, up to `within`; -1: none is there."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def nearest_of(world, i, owner, kind, within):
    """`nearest` of one kind."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive and world.units[j].kind == kind:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found


@inner
def nearest_troop(world, i, owner, within):
    """`nearest` of those that fight."""
    best, found = within * within, -1
    for j in numbers_of(world, owner):
        if world.units[j].alive and world.kinds[world.units[j].kind].is_troop:
            d = distance2(world.units[i], world.units[j])
            if d <= best and (found < 0 or d < best):
                best, found = d, j
    return found
