"""One tick of any game."""

from __future__ import annotations

from sf.envs.rts.engine import ais
from sf.envs.rts.engine.games import flag, mini, towers
from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders.obeying import obey
from sf.envs.rts.engine.places import numbers_of, remove
from sf.envs.rts.engine.state import FLAG, MINI, NOBODY, TOWERS, clear


@inner
def begin(world, extra):
    """Begin a new game, which goes on with the random numbers of the one before."""
    clear(world)
    if world.game.rules == MINI:
        mini.begin(world, extra)
    elif world.game.rules == FLAG:
        flag.begin(world)
    elif world.game.rules == TOWERS:
        towers.begin(world)


@inner
def tick(world):  # noqa: PLR0912  the phases of a tick, in their order
    """AIs command, units obey, hits take effect at once, and the rules of the game judge what has come of it."""
    game = world.game
    if game.winner != NOBODY:
        return
    game.tick += 1
    for turn in range(2):
        side = game.first ^ turn
        player = world.players[side]
        if player.ai != ais.NO_AI and game.tick % player.frame_skip == 0:
            ais.ai_command(world, side)
    for turn in range(2):
        for i in numbers_of(world, game.first ^ turn):
            if world.units[i].alive:
                obey(world, i)
    for side in range(2):
        for i in numbers_of(world, side):
            unit = world.units[i]
            if unit.damage > 0:
                unit.hp -= unit.damage
                unit.damage = 0
                if unit.alive and unit.hp <= 0:
                    _die(world, i)
    if game.rules == MINI:
        mini.judge(world)
    elif game.rules == FLAG:
        flag.judge(world)
    elif game.rules == TOWERS:
        towers.judge(world)
    game.first = 1 - game.first


@inner
def _die(world, i):
    world.players[1 - world.units[i].owner].kills += 1
    remove(world, i)
    if world.game.rules == FLAG:
        flag.on_death(world, i)
    elif world.game.rules == TOWERS:
        towers.on_death(world, i)
