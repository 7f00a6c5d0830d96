"""Capture the Flag: take the flag from the middle of the map to one's base, five times."""

from __future__ import annotations

import math

import numpy as np

from sf.envs.rts.engine.places import settle_beside, spawn
from sf.envs.rts.engine.state import DRAW, NEUTRAL, inner, uniform
from sf.envs.rts.engine.units import ATHLETE, BASE, FLAG

ATHLETES = 5  # of each side
_OURS, _THEIRS = np.int64(0), np.int64(1)
TO_WIN = 5
RESPAWN = 150  # ticks
_AT_HOME = 0.8  # cells between the athlete with the flag and its base


@inner
def begin(world):
    """The flag is as far from one base as from the other; each athlete has an opponent in the mirrored place."""
    game = world.game
    edge = game.half
    x, y = uniform(game, 1.0, 3.0) - edge, uniform(game, 1.0, 3.0) - edge
    for side in range(2):
        sign = 1.0 - 2.0 * side
        world.players[side].home_x, world.players[side].home_y = sign * x, sign * y
        spawn(world, side, BASE, sign * x, sign * y)
    share = uniform(game, -0.6, 0.6)
    spawn(world, NEUTRAL, FLAG, -share * y, share * x)
    for _ in range(ATHLETES):
        placed = False
        while not placed:
            at_x, at_y = uniform(game, 0.5 - edge, edge - 0.5), uniform(game, 0.5 - edge, edge - 0.5)
            placed = at_x * at_x + at_y * at_y > 1.0 and at_x * x + at_y * y > 0.0
            if placed:
                placed = spawn(world, _OURS, ATHLETE, at_x, at_y) >= 0
                if placed:
                    spawn(world, _THEIRS, ATHLETE, -at_x, -at_y)
    game.flag_share = _flag_share(world)


@inner
def _flag_share(world):
    """Returns how much nearer the flag is to the base of player 0 than of player 1, in distances of the bases."""
    flag, ours, theirs = world.units[NEUTRAL * world.game.room], world.players[0], world.players[1]
    near = _distance(flag.x - ours.home_x, flag.y - ours.home_y)
    far = _distance(flag.x - theirs.home_x, flag.y - theirs.home_y)
    return (far - near) / _distance(ours.home_x - theirs.home_x, ours.home_y - theirs.home_y)


@inner
def _distance(dx, dy):
    return math.sqrt(dx * dx + dy * dy)


@inner
def on_death(world, i):
    """The athlete comes back after a while, and leaves the flag where it died."""
    world.units[i].timer = RESPAWN
    if world.game.carrier == i:
        world.game.carrier = -1


@inner
def judge(world):
    """Pay each side for every cell that the flag comes nearer to its base (1 for all of the way from the middle), and 1
    for each time that it gets there; the other side pays that.
    """
    game, room = world.game, world.game.room
    flag = world.units[NEUTRAL * room]
    if game.carrier >= 0:
        carrier = world.units[game.carrier]
        flag.x, flag.y = carrier.x, carrier.y
        share = _flag_share(world)
        _pay(world, _OURS, share - game.flag_share)
        home = world.units[carrier.owner * room]  # its base, which nobody can destroy
        dx, dy = carrier.x - home.x, carrier.y - home.y
        if dx * dx + dy * dy <= _AT_HOME * _AT_HOME:
            _pay(world, carrier.owner, 1.0)
            world.players[carrier.owner].score += 1
            if world.players[carrier.owner].score == TO_WIN:
                game.winner = carrier.owner
            carrier.order = 0
            flag.x, flag.y, game.carrier = 0.0, 0.0, -1
    game.flag_share = _flag_share(world)
    for turn in range(2):
        base = (game.first ^ turn) * room
        for i in range(base + 1, base + 1 + ATHLETES):
            if not world.units[i].alive:
                world.units[i].timer -= 1
                if world.units[i].timer <= 0:
                    settle_beside(world, base, i, ATHLETE)
    if game.winner < 0 and game.tick >= game.max_ticks:
        game.winner = DRAW


@inner
def _pay(world, side, what):
    world.players[side].reward += what
    world.players[1 - side].reward -= what
