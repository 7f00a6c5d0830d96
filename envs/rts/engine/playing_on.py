"""Copies games and lets the copies go on, which is how a search plays: `sf.envs.rts.forward` calls it.

What is compiled here has the whole engine in it once more, so that is done when the first search begins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from sf.envs.rts.engine.ais import NO_AI
from sf.envs.rts.engine.commands import command
from sf.envs.rts.engine.compiled import DIGEST, alone, tick
from sf.envs.rts.engine.flag import ATHLETES
from sf.envs.rts.engine.observations import write_allowed
from sf.envs.rts.engine.state import NOBODY, TOWERS, World, allocate, below, draw, inner
from sf.envs.rts.engine.units import table

NOTHING, RANDOM = -1, -2
"""Take the place of an action: the copy stays as it is, or its commands are drawn at random."""

_OURS = np.int64(0)
_LEAST = 1 + ATHLETES  # units of a side: dead athletes come back, although they are not counted


def _compile(digest: int) -> Callable[..., Any]:
    @njit(cache=True, nogil=True)
    def play_on(worlds, sources, targets, actions, seeds, num_ticks, most_ticks, num_commands, masks, rewards):
        """Copy M games over others, and let the copies go on.

        sources, targets: [M] int64, the numbers of the games and of their copies, which may be the same.
        actions: [M] int64, what player 0 commands before num_ticks; or `NOTHING`; or `RANDOM`: one of all commands that
            are allowed, again and again, until the game ends or for most_ticks.
        seeds: [M] uint64, of the random numbers of the copies.
        masks: [M, L] int8, what player 0 may command then, is written where L is not 0.
        rewards: [M] float64, what player 0 was paid meanwhile, is written.

        Returns the number of ticks.
        """
        _ = digest
        games, players, units, cells, ground, kinds = worlds
        played = 0
        for m in range(len(sources)):
            t = targets[m]
            copy(worlds, sources[m], t)
            world = World(games[t], players[t], units[t], cells[t], ground[t], kinds)
            game, player = world.game, world.players[0]
            game.rng = seeds[m]
            world.players[1].rng = draw(game)
            player.ai = NO_AI
            action = actions[m]
            start = end = game.tick
            if action != NOTHING:
                end += most_ticks if action == RANDOM else num_ticks
            while game.winner == NOBODY and game.tick < end:
                command(world, _OURS, _random_command(world, num_commands, masks[m]) if action == RANDOM else action)
                for _n in range(num_ticks):
                    if game.winner != NOBODY:
                        break
                    tick(world)
            played += game.tick - start
            rewards[m] = player.reward
            player.reward, world.players[1].reward = 0.0, 0.0
            if masks.shape[1] > 0:
                write_allowed(world, _OURS, masks[m])
        return played

    return play_on


play_on = _compile(DIGEST)


@cache
def warm_up() -> None:
    """Compile this once, as `sf.envs.rts.engine.compiled.warm_up` does."""
    nothing = np.zeros(0, np.int64)
    with alone():
        play_on(
            *(allocate(1, table()), nothing, nothing, nothing, np.zeros(0, np.uint64)),
            *(0, 0, 1, np.zeros((0, 0), np.int8), np.zeros(0)),
        )


@inner
def copy(worlds, source, target):
    """Copy a game over another. Of the units, those that may be alive in one of both are copied: others are dead."""
    games, players, units, cells, ground, _kinds = worlds
    room = games[source].room
    for owner in range(3):
        num = max(players[source, owner].num, players[target, owner].num, _LEAST)
        for i in range(owner * room, owner * room + num):
            units[target, i] = units[source, i]
        players[target, owner] = players[source, owner]
    games[target] = games[source]
    size = cells.shape[1]
    for row in range(size):
        for column in range(size):
            cells[target, row, column] = cells[source, row, column]
    if games[source].rules == TOWERS:  # elsewhere there are no walls
        for row in range(size):
            for column in range(size):
                ground[target, row, column] = ground[source, row, column]


@inner
def _random_command(world, num, mask):
    """Returns a command that is allowed, all with the same probability. mask: [L] int8 is overwritten."""
    if len(mask) == 0:
        return below(world.game, num)
    write_allowed(world, _OURS, mask)
    num_allowed = 0
    for what in range(num):
        num_allowed += mask[what]
    left = below(world.game, num_allowed)
    for what in range(num):
        if mask[what]:
            if left == 0:
                return what
            left -= 1
    return 0
