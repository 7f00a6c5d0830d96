"""Lengths of time, speeds and distances of the rules."""

from __future__ import annotations

import numpy as np
import pytest
from rts_games import begun, of_kind, place, troops

from sf.envs.rts.engine.commands import COMMANDS, FLAG_COMMANDS
from sf.envs.rts.engine.orders import ATTACK, GO_HOME
from sf.envs.rts.engine.units import ATHLETE, RANGE, RESOURCE

IDLE = np.zeros((1, 2, 1), np.int64)
DEFEND = np.array([[[COMMANDS.index("all_defend")], [0]]])
HIT_AND_RUN = np.array([[[COMMANDS.index("hit_and_run")], [0]]])


def test_an_athlete_walks_0_1_cells_a_tick_and_0_06_with_the_flag():
    games = begun(3, game="flag")
    units, game = games.worlds.units[0], games.worlds.games[0]
    athletes = np.flatnonzero(of_kind(games, ATHLETE))
    carrier = max(athletes, key=lambda i: np.hypot(units["x"][i] - units["x"][0], units["y"][i] - units["y"][0]))
    game["carrier"], units["order"][carrier] = carrier, GO_HOME
    games.advance(np.array([[[FLAG_COMMANDS.index("get_flag")], [0]]]), 0)
    for _ in range(5):
        before = units[athletes].copy()
        games.advance(IDLE, 1)
        steps = np.hypot(units["x"][athletes] - before["x"], units["y"][athletes] - before["y"])
        assert steps == pytest.approx(np.where(athletes == carrier, 0.06, 0.1))


def test_a_wave_comes_every_200_ticks_until_ten_have_come():
    games = begun(3, 1, game="tower")
    came = []
    while games.winner[0] < 0:
        games.worlds.players[0, 0]["leaks"] = 0
        before = games.worlds.games[0]["to_come"]
        games.advance(IDLE[:, :1], 1)
        if games.worlds.games[0]["to_come"] > before:
            came.append(int(games.ticks[0]))
    assert came == list(range(1, 2000, 200))


@pytest.mark.parametrize(("far", "is_near"), [(4.0, True), (5.9, True), (6.1, False), (7.0, False)])
def test_troops_defend_up_to_six_cells_from_their_base(far, is_near):
    games = begun(3, extra=1)
    units = games.worlds.units[0]
    units["alive"][of_kind(games, RESOURCE, 2)] = 0  # around which they defend, too
    foe = np.flatnonzero(troops(games, 1))[0]
    place(games, foe, 0, far)
    games.advance(DEFEND, 0)
    assert (units["order"][troops(games)] == ATTACK).all() == is_near


@pytest.mark.parametrize(("far", "is_near"), [(2.9, True), (3.1, False)])
def test_troops_defend_up_to_three_cells_from_their_mines(far, is_near):
    games = begun(3, extra=1)
    units, home = games.worlds.units[0], games.worlds.players[0, 0]
    first, second, *_ = (i for i in np.flatnonzero(of_kind(games, RESOURCE, 2)) if units["x"][i] * home["home_x"] > 0)
    units["alive"][second] = 0
    place(games, first, 0, 7.0)
    place(games, np.flatnonzero(troops(games, 1))[0], first, far)
    foe = units[np.flatnonzero(troops(games, 1))[0]]
    assert np.hypot(foe["x"] - home["home_x"], foe["y"] - home["home_y"]) > 6.0
    games.advance(DEFEND, 0)
    assert (units["order"][troops(games)] == ATTACK).all() == is_near


@pytest.mark.parametrize(("far", "runs"), [(1.5, True), (2.4, True), (2.6, False)])
def test_who_hits_and_runs_keeps_1_5_cells_more_than_the_reach_of_who_has_hit_it(far, runs):
    games = begun(3, extra=2)
    units = games.worlds.units[0]
    runner = np.flatnonzero(of_kind(games, RANGE))[0]
    foe = np.flatnonzero(troops(games, 1))[0]
    units["kind"][foe] = 1  # a melee attacker: its reach is 1
    place(games, foe, runner, far)
    units["hit_by"][runner], units["hit_by_serial"][runner], units["ready_in"][runner] = foe, units["serial"][foe], 20
    games.advance(HIT_AND_RUN, 1)
    apart = np.hypot(units["x"][runner] - units["x"][foe], units["y"][runner] - units["y"][foe])
    assert apart > far + 0.01 if runs else apart == pytest.approx(far)
