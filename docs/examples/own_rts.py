"""A unit and a command of your own in Mini-RTS.

python own_rts.py
sf-train --env own_rts:scouts --config rts
"""

from numba import njit

from sf import main
from sf.envs import register_env
from sf.envs.rts import UNITS, RtsEnv, Unit
from sf.envs.rts.engine.orders import MOVE, order_to
from sf.envs.rts.engine.places import numbers_of

# Barracks make it. It has a head of its own among the actions by type, and two planes.
SCOUT = Unit("scout", cost=60, hp=30, speed=0.3, attack=4, range=1.0, sight=8.0, made_by="barracks", is_troop=True)


@njit
def retreat(world, player):
    """All troops go home."""
    home = world.players[player]
    for i in numbers_of(world, player):
        if world.units[i].alive and world.kinds[world.units[i].kind].is_troop:
            order_to(world, i, MOVE, home.home_x, home.home_y)


@register_env("scouts")
def scouts(render_mode=None):
    """Mini-RTS with scouts."""
    return RtsEnv(render_mode=render_mode, units=(*UNITS, SCOUT), actions="by_type")


@register_env("retreating")
def retreating(render_mode=None):
    """Mini-RTS with a tenth command."""
    return RtsEnv(render_mode=render_mode, commands={"retreat": retreat})


@register_env("extended")
def extended(render_mode=None):
    """Mini-RTS with the planes of scouts and a tenth command, whose policy can come from `rts_mini` by sf-surgery."""
    return RtsEnv(render_mode=render_mode, units=(*UNITS, SCOUT), commands={"retreat": retreat})


if __name__ == "__main__":
    main(env="retreating", config="rts", train_for_env_steps=200_000)
