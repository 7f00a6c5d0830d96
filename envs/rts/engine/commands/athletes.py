"""Commands of Capture the Flag."""

from __future__ import annotations

import numpy as np

from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders import giving as orders
from sf.envs.rts.engine.orders.giving import order, order_at
from sf.envs.rts.engine.places import numbers_of
from sf.envs.rts.engine.units import ATHLETE

# Of whom: all, or all but the one with the flag.
ALL, OTHERS = np.int64(0), np.int64(1)


@inner
def command_athletes(world, owner, what, of_whom):
    """One of FLAG_COMMANDS. The athlete with the flag goes on with it unless it is told to go home."""
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
