"""Compiled loops over the games of a group, which Python calls, and one tick of any game.

Numba keeps what it has compiled beside the source, and compiles again when that file changes. The functions here call
those of all modules of the engine, so each of them refers to `DIGEST`, which Numba counts among what it has compiled.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from sf.envs.rts.engine import ais, flag, mini, towers
from sf.envs.rts.engine.commands import command, command_kinds
from sf.envs.rts.engine.obeying import obey
from sf.envs.rts.engine.observations import WALLS, draw_planes, write_allowed
from sf.envs.rts.engine.places import numbers_of, remove
from sf.envs.rts.engine.state import FLAG, MINI, NOBODY, TOWERS, World, allocate, clear, inner
from sf.envs.rts.engine.units import table

_FOLDER = Path(__file__).parent
DIGEST = int(hashlib.sha256(b"".join(p.read_bytes() for p in sorted(_FOLDER.rglob("*.py")))).hexdigest()[:15], 16)


def _compile(digest: int) -> tuple[Callable[..., Any], ...]:
    @njit(cache=True, nogil=True)
    def advance(worlds, begins, extra, helper, choices, by_kind, num_ticks, rewards):
        """Begin games anew, or let them go on: one function, since each has the whole engine in it.

        begins: [G] int64, -1 for a game that goes on. Else it begins anew, and the AI `helper` plays for player 0 as
            many ticks. extra: more troops of each side at its beginning.
        choices: [G, P, H] int64, the commands of the first P players of games that go on: of each kind of unit, or one
            of COMMANDS. The games go on for `num_ticks`, or to their end.
        rewards: [G, 2] float64, what each player was paid meanwhile, is written.

        Returns the number of ticks of the games that went on.
        """
        _ = digest
        games, players, units, cells, ground, kinds = worlds
        played = 0
        for g in range(len(games)):
            world = World(games[g], players[g], units[g], cells[g], ground[g], kinds)
            start, ticks = world.game.tick, num_ticks
            ai = world.players[0].ai
            if begins[g] >= 0:
                begin(world, extra)
                start, ticks = 0, begins[g]
                if ticks > 0:
                    world.players[0].ai = helper
            else:
                for turn in range(2):
                    p = world.game.first ^ turn
                    if p < choices.shape[1]:
                        if by_kind:
                            command_kinds(world, p, choices[g, p])
                        else:
                            command(world, p, choices[g, p, 0])
            for _n in range(ticks):
                if world.game.winner != NOBODY:
                    break
                tick(world)
            for p in range(2):
                rewards[g, p] = world.players[p].reward
                world.players[p].reward = 0.0
            if begins[g] < 0:
                played += world.game.tick - start
            world.players[0].ai = ai
        return played

    @njit(cache=True, nogil=True)
    def observe(worlds, which, num_players, plane_of, planes, masks):
        """Write what the first players of M games see [M, P, C, S, S] int8, and what they may command [M, P, L]
        int8, where L is not 0: see `sf.envs.rts.engine.observations`.

        which: [M] int64, the numbers of the games.
        """
        _ = digest
        games, players, units, cells, ground, kinds = worlds
        for m in range(len(which)):
            g = which[m]
            world = World(games[g], players[g], units[g], cells[g], ground[g], kinds)
            for p in range(num_players):
                draw_planes(world, p, plane_of, planes[m, p])
                if masks.shape[2] > 0:
                    write_allowed(world, p, masks[m, p])

    @njit(cache=True, nogil=True)
    def advise(worlds, num_players, asked, commands, are_same):
        """Write which command comes nearest to what each AI of `asked` [N] would do in the place of the first players
        of each game now, [G, P, N] int64, and whether it is the same, [G, P, N] bool."""
        _ = digest
        games, players, units, cells, ground, kinds = worlds
        for g in range(len(games)):
            world = World(games[g], players[g], units[g], cells[g], ground[g], kinds)
            for p in range(num_players):
                for n in range(len(asked)):
                    commands[g, p, n], are_same[g, p, n] = ais.advised(world, p, asked[n])

    return advance, observe, advise


advance, observe, advise = _compile(DIGEST)


@cache
def warm_up() -> None:
    """Compile the engine once, by whoever comes first: the others wait for that, and load what is left on disk.

    It takes half a minute where the engine is new, and a second otherwise. The lock ends with the process.
    """
    worlds = allocate(1, table())
    nothing = np.zeros((1, 0, 1), np.int64)
    plane_of = np.full((3, len(worlds.kinds)), -1, np.int64)
    with alone():
        advance(worlds, np.zeros(1, np.int64), 0, 0, nothing, False, 0, np.zeros((1, 2)))
        planes = np.zeros((1, 1, WALLS, 20, 20), np.int8)
        observe(worlds, np.zeros(1, np.int64), 1, plane_of, planes, np.zeros((1, 1, 0), np.int8))
        advise(worlds, 1, np.zeros(1, np.int64), np.zeros((1, 1, 1), np.int64), np.zeros((1, 1, 1), np.bool_))


@contextmanager
def alone() -> Iterator[None]:
    """One process of the user at a time. Where the user's cache cannot be written, each compiles for itself."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sf"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "rts.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except (OSError, RuntimeError):  # RuntimeError: this user has no home
        yield
        return
    try:
        with suppress(OSError):  # a disk without locks, as some of networks are
            import fcntl  # noqa: PLC0415  Windows has none

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


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
