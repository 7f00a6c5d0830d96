"""Players that follow rules and know everything: each is a function that gives at most one command.

A new one is a function, its name in `AIS`, and its line in `ai_command`.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.commands import (
    COMMANDS,
    FLAG_COMMANDS,
    attack,
    build,
    command,
    count,
    has_idle,
    hit_and_run,
    make,
)
from sf.envs.rts.engine.orders import GUARD, order
from sf.envs.rts.engine.places import numbers_of
from sf.envs.rts.engine.state import FLAG, TOWERS, below, inner
from sf.envs.rts.engine.towers import NUM_SITES
from sf.envs.rts.engine.units import ATHLETE, BARRACKS, MELEE, RANGE, WORKER

AIS = ("nobody", "simple", "hit_and_run", "flag", "random")
NO_AI, SIMPLE, HIT_AND_RUN, FLAG_AI, RANDOM = range(len(AIS))

_WORKERS = 3
_GET_FLAG, _ESCORT, _ATTACK = np.int64(1), np.int64(2), np.int64(3)


@inner
def ai_command(world, owner):
    """The AI of a player commands."""
    ai = world.players[owner].ai
    if ai == SIMPLE:
        simple(world, owner)
    elif ai == HIT_AND_RUN:
        harass(world, owner)
    elif ai == FLAG_AI:
        capture(world, owner)
    elif ai == RANDOM:
        num = len(COMMANDS)
        if world.game.rules == TOWERS:
            num = 1 + NUM_SITES
        elif world.game.rules == FLAG:
            num = len(FLAG_COMMANDS)
        command(world, owner, below(world.players[owner], num))


@inner
def simple(world, owner):
    """Three workers, barracks, then melee attackers; whenever there are five, all attack the base."""
    if count(world, owner, MELEE) >= 5 and has_idle(world, owner, MELEE):
        attack(world, owner, MELEE)
    else:
        _grow(world, owner, MELEE)


@inner
def harass(world, owner):
    """Three workers, barracks, then range attackers; whenever there are two, they hit and run."""
    if count(world, owner, RANGE) >= 2 and has_idle(world, owner, RANGE):
        hit_and_run(world, owner, RANGE)
    else:
        _grow(world, owner, RANGE)


@inner
def _grow(world, owner, troop):
    if count(world, owner, WORKER) < _WORKERS:
        make(world, owner, WORKER)
    elif count(world, owner, BARRACKS) == 0:
        build(world, owner, BARRACKS)
    else:
        make(world, owner, troop)


@inner
def capture(world, owner):
    """Get the flag; who has it takes it home while the others guard; all attack an opponent that has it."""
    carrier = world.game.carrier
    if carrier < 0:
        command(world, owner, _GET_FLAG)
    elif world.units[carrier].owner == owner:
        command(world, owner, _ESCORT)
        for i in numbers_of(world, owner):
            unit = world.units[i]
            if i != carrier and unit.alive and unit.kind == ATHLETE and unit.order != GUARD:
                order(world, i, GUARD)
    else:
        command(world, owner, _ATTACK)
