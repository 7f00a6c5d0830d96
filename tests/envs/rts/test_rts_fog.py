"""What a player is shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rts_games import alive, begun, wander

from sf.envs.rts.controls import controls
from sf.envs.rts.engine.state import NEUTRAL
from sf.envs.rts.engine.units import BASE, FLAG, NAMES, RESOURCE
from sf.envs.rts.games import Games


def _seen(games: Games) -> np.ndarray:
    """[P, C, S, S]"""
    layout, size, num_players = controls(games.settings), games.settings.size, games.num_players
    planes = np.zeros((1, num_players, len(layout.plane_names), size, size), np.int8)
    games.observe(layout.plane_of, planes, np.zeros((1, num_players, 0), np.int8))
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


def _expected(games: Games, viewer: int) -> np.ndarray:
    """[C, S, S], by a loop over cells and units that knows nothing of the engine's."""
    layout, size, knows_all = controls(games.settings), games.settings.size, games.settings.game == "tower"
    names, kinds, sign = layout.plane_names, games.worlds.kinds, 1 - 2 * viewer
    expected = np.zeros((len(names), size, size), np.int64)
    rows, columns = np.mgrid[:size, :size]
    for unit in alive(games):
        owner, kind = unit["owner"], unit["kind"]
        row, column = (min(max(int(sign * unit[axis] + size / 2), 0), size - 1) for axis in ("y", "x"))
        if owner == viewer or knows_all:
            within = (rows - row) ** 2 + (columns - column) ** 2 <= kinds["sight"][kind] ** 2
            expected[names.index("in_sight")][within | knows_all] = 10
        is_known = kind == FLAG or (kind == BASE and owner != NEUTRAL)
        if owner == viewer or knows_all or is_known or _in_sight(games, viewer, unit):
            hp = np.ceil(10 * unit["hp"] / kinds["hp"][kind])
            prefix = "" if owner == NEUTRAL else "own_" if owner == viewer else "enemy_"
            expected[names.index(prefix + NAMES[kind]), row, column] += hp if kind == RESOURCE else 10
            if owner != NEUTRAL:
                expected[names.index(f"{prefix}hp"), row, column] += hp
    carrier, store = games.worlds.games["carrier"][0], names.index("store")
    if games.settings.game != "flag":
        expected[store] = min(games.worlds.players[0, viewer]["minerals"] // 50, 20)
    elif carrier >= 0:
        expected[store] = 10 if games.worlds.units[0, carrier]["owner"] == viewer else -10
    if "walls" in names:
        expected[names.index("walls")] = 10 * (games.worlds.ground[0] < 0)
    return np.minimum(expected, 127)


@pytest.mark.parametrize(("game", "size"), [("mini", 20), ("mini", 17), ("flag", 20), ("flag", 33), ("tower", 20)])
def test_the_planes_hold_what_is_in_sight_each_unit_in_its_cell(game, size):
    stores = set()
    for seed in range(1, 4):
        games = begun(seed, 1 if game == "tower" else 2, game=game, size=size)
        for part in range(15):
            for viewer, planes in enumerate(_seen(games)):
                np.testing.assert_array_equal(planes, _expected(games, viewer))
                stores |= set(planes[2].ravel().tolist())
            wander(games, 2, 100 * seed + part)
    assert stores == {-10, 0, 10} if game == "flag" else len(stores) > 2


def test_a_cell_with_more_than_twelve_units_is_shown_as_full():
    games = begun(5)
    workers = games.worlds.units[0][:20]  # the first are those of player 0
    games.worlds.players[0, 0]["num"] = len(workers)
    workers["alive"], workers["owner"], workers["kind"], workers["hp"] = 1, 0, NAMES.index("worker"), 50
    workers["x"], workers["y"] = 3.5, -2.5
    planes, names = _seen(games)[0], controls(games.settings).plane_names
    assert planes[names.index("own_worker"), 7, 13] == planes[names.index("own_hp"), 7, 13] == 127
