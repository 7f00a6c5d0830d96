"""Fog of war: a player sees what is within the sight of one of its units."""

from __future__ import annotations

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.places import distance2, numbers_of


@inner
def look(world, viewer):
    """Note at each unit of others whether the player sees it, as bit `viewer` of `seen`."""
    for owner in range(3):
        if owner != viewer:
            for i in numbers_of(world, owner):
                unit = world.units[i]
                unit.seen &= ~(1 << viewer)
                if unit.alive and sees(world, viewer, unit):
                    unit.seen |= 1 << viewer


@inner
def sees(world, viewer, unit):
    for j in numbers_of(world, viewer):
        eye = world.units[j]
        sight = world.kinds[eye.kind].sight
        if eye.alive and distance2(eye, unit) <= sight * sight:
            return True
    return False
