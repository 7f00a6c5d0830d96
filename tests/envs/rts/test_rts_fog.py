"""What a player is shown."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rts_games import alive, begun, wander

from sf.envs.rts.controls import controls
from sf.envs.rts.engine.state import NEUTRAL
from sf.envs.rts.engine.units import BASE, FLAG, NAMES, RESOURCE
from sf.envs.rts.games import Games


def _seen(games: Games) -> np.ndarray:
    """[2, C, S, S]"""
    layout = controls(games.settings)
    planes = np.zeros((1, 2, len(layout.plane_names), 20, 20), np.int8)
    games.observe(layout.plane_of, planes, np.zeros((1, 2, 0), np.int8))
    return planes[0]


def _in_sight(games: Games, viewer: int, unit: np.void) -> bool:
    eyes = alive(games)
    eyes = eyes[eyes["owner"] == viewer]
    sights = games.worlds.kinds["sight"][eyes["kind"]]
    return bool(((eyes["x"] - unit["x"]) ** 2 + (eyes["y"] - unit["y"]) ** 2 <= sights**2).any())


@settings(max_examples=15)
@given(st.integers(1, 10**6), st.sampled_from(["mini", "flag"]), st.integers(0, 40))
def test_what_nobody_sees_changes_nothing_of_an_observation(seed, game, num_decisions):
    games = begun(seed, game=game)
    wander(games, num_decisions, seed)
    for viewer in range(2):
        before = _seen(games)[viewer]
        other = Games(games.settings, [1], 2)
        other.restore(0, games.snapshot(0))
        for unit in other.worlds.units[0]:
            is_known = unit["kind"] == FLAG or (unit["kind"] == BASE and unit["owner"] != NEUTRAL)
            if unit["alive"] and unit["owner"] != viewer and not is_known and not _in_sight(games, viewer, unit):
                unit["alive"] = 0
        np.testing.assert_array_equal(_seen(other)[viewer], before)


@settings(max_examples=15)
@given(st.integers(1, 10**6), st.integers(0, 40))
def test_the_planes_hold_what_is_in_sight_each_unit_in_its_cell(seed, num_decisions):
    games = begun(seed)
    wander(games, num_decisions, seed)
    names = controls(games.settings).plane_names
    for viewer, planes in enumerate(_seen(games)):
        sign = 1 - 2 * viewer
        expected = np.zeros(planes.shape)
        for unit in alive(games):
            owner, kind = unit["owner"], unit["kind"]
            is_shown = owner == viewer or _in_sight(games, viewer, unit) or (kind == BASE and owner != NEUTRAL)
            if is_shown:
                row, column = (min(max(int(sign * unit[axis] + 10), 0), 19) for axis in ("y", "x"))
                hp = np.ceil(10 * unit["hp"] / games.worlds.kinds[kind]["hp"])
                prefix = "" if owner == NEUTRAL else "own_" if owner == viewer else "enemy_"
                expected[names.index(prefix + NAMES[kind]), row, column] += hp if kind == RESOURCE else 10
                if owner != NEUTRAL:
                    expected[names.index(f"{prefix}hp"), row, column] += hp
        expected[2] = min(games.worlds.players[0, viewer]["minerals"] // 50, 20)
        expected[3] = planes[3]
        np.testing.assert_array_equal(planes, expected)


def test_a_cell_with_more_than_twelve_units_is_shown_as_full():
    games = begun(5)
    workers = games.worlds.units[0][:20]  # the first are those of player 0
    games.worlds.players[0, 0]["num"] = len(workers)
    workers["alive"], workers["owner"], workers["kind"], workers["hp"] = 1, 0, NAMES.index("worker"), 50
    workers["x"], workers["y"] = 3.5, -2.5
    planes, names = _seen(games)[0], controls(games.settings).plane_names
    assert planes[names.index("own_worker"), 7, 13] == planes[names.index("own_hp"), 7, 13] == 127


def test_both_players_see_the_same_at_a_start_that_is_the_same_for_both():
    games = begun(11, game="flag")
    own, other = _seen(games)
    np.testing.assert_array_equal(own[4:6].sum((1, 2)), other[4:6].sum((1, 2)))
    np.testing.assert_array_equal(own[4], other[4])  # the base
