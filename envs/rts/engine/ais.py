"""Players that follow rules and know everything: each is a function that gives at most one command.

A new one is a function, its name in `AIS`, and its line in `ai_command`.
"""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.commands import COMMANDS, FLAG_COMMANDS, attack, command, count, has_idle
from sf.envs.rts.engine.orders import GUARD, order
from sf.envs.rts.engine.places import numbers_of
from sf.envs.rts.engine.state import FLAG, TOWERS, below, inner
from sf.envs.rts.engine.towers import NUM_SITES
from sf.envs.rts.engine.units import ATHLETE, BARRACKS, MELEE, RANGE, WORKER

AIS = ("nobody", "simple", "hit_and_run", "flag", "random")
NO_AI, SIMPLE, HIT_AND_RUN, FLAG_AI, RANDOM = range(len(AIS))

ADVISERS = ("simple", "hit_and_run", "flag")  # of AIS, which say what they would do

_WORKERS = 3
_BUILD_WORKER, _BUILD_BARRACKS, _BUILD_MELEE, _BUILD_RANGE, _HIT_AND_RUN, _ATTACK = map(np.int64, range(1, 7))
_GET_FLAG, _ESCORT, _ATTACK_CARRIER = np.int64(1), np.int64(2), np.int64(3)


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
    if _attacks(world, owner):
        attack(world, owner, MELEE)
    else:
        command(world, owner, _growth(world, owner, MELEE))


@inner
def _attacks(world, owner):
    return count(world, owner, MELEE) >= 5 and has_idle(world, owner, MELEE)


@inner
def harass(world, owner):
    """Three workers, barracks, then range attackers; whenever there are two, they hit and run."""
    if count(world, owner, RANGE) >= 2 and has_idle(world, owner, RANGE):
        command(world, owner, _HIT_AND_RUN)
    else:
        command(world, owner, _growth(world, owner, RANGE))


@inner
def _growth(world, owner, troop):
    """Returns the command by which a side grows."""
    if count(world, owner, WORKER) < _WORKERS:
        return _BUILD_WORKER
    if count(world, owner, BARRACKS) == 0:
        return _BUILD_BARRACKS
    return _BUILD_MELEE if troop == MELEE else _BUILD_RANGE


@inner
def capture(world, owner):
    """Get the flag; who has it takes it home while the others guard; all attack an opponent that has it."""
    what = _with_flag(world, owner)
    command(world, owner, what)
    if what == _ESCORT:
        for i in numbers_of(world, owner):
            unit = world.units[i]
            if i != world.game.carrier and unit.alive and unit.kind == ATHLETE and unit.order != GUARD:
                order(world, i, GUARD)


@inner
def _with_flag(world, owner):
    carrier = world.game.carrier
    if carrier < 0:
        return _GET_FLAG
    return _ESCORT if world.units[carrier].owner == owner else _ATTACK_CARRIER


@inner
def advised(world, owner, ai):
    """Returns the command that comes nearest to what an AI would do now, and whether it is the same; -1 from others
    than the three."""
    if ai == SIMPLE:
        if _attacks(world, owner):  # with its melee attackers alone
            return _ATTACK, count(world, owner, RANGE) == 0
        return _growth(world, owner, MELEE), True
    if ai == HIT_AND_RUN:
        if count(world, owner, RANGE) >= 2 and has_idle(world, owner, RANGE):
            return _HIT_AND_RUN, True
        return _growth(world, owner, RANGE), True
    if ai == FLAG_AI:
        what, is_same = _with_flag(world, owner), True
        if what == _ESCORT:
            for i in numbers_of(world, owner):
                unit = world.units[i]
                others = i != world.game.carrier and unit.alive and unit.kind == ATHLETE
                is_same = is_same and not (others and unit.order != GUARD)
        return what, is_same
    return np.int64(-1), True
