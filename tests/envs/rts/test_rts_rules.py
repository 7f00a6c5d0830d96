"""Rules that hold at the limits of a game: empty mines, no room for a unit, the last tick."""

from __future__ import annotations

import numpy as np
import pytest
from rts_games import begun, of_kind, place, troops

from sf.envs.rts import RtsEnv
from sf.envs.rts.arena import Arena
from sf.envs.rts.engine.commands import COMMANDS
from sf.envs.rts.engine.orders import BUILD, IDLE, MAKE, MOVE
from sf.envs.rts.engine.units import ATHLETE, BARRACKS, BASE, MELEE, RANGE, RESOURCE, TOWER, WORKER
from sf.envs.rts.games import Games
from sf.envs.rts.settings import Settings


def test_a_worker_with_a_load_brings_it_home_after_it_has_built_though_all_mines_are_empty():
    games, idle = begun(6), np.zeros((1, 2, 1), np.int64)  # each side has one worker, and no barracks
    units = games.worlds.units[0]
    units["hp"][of_kind(games, RESOURCE, 2)] = 20
    while of_kind(games, RESOURCE, 2).any() or not (units["load"][of_kind(games, WORKER)] > 0).all():
        games.advance(idle, 1)
        assert games.ticks[0] < 400
    games.worlds.players[0, 0]["minerals"] = 400
    games.advance(np.array([[[2], [0]]]), 1)
    games.advance(idle, 500)
    assert of_kind(games, BARRACKS).sum() == 1
    assert (units["order"][of_kind(games, WORKER)] != BUILD).all()
    assert (units["load"][of_kind(games, WORKER)] == 0).all()
    assert games.worlds.players[0, 0]["minerals"] == 220


def test_a_tower_is_allowed_only_where_there_is_room_for_one_more():
    arena = Arena(Settings(game="tower", room=16), [0])
    arena.begin(np.ones(1, bool))
    player = arena.games.worlds.players[0, 0]
    player["minerals"] = 5000
    arena.look()
    while arena.masks[0, 0, 1:].any():
        before = int(player["spent"])
        arena.step(np.array([[[1 + arena.masks[0, 0, 1:].argmax()]]]))
        assert player["spent"] == before + 50
        arena.look()
    assert of_kind(arena.games, TOWER).sum() == 15  # and the base


def test_a_unit_is_not_paid_for_without_room_for_it():
    env = RtsEnv(room=16, extra=10, actions="by_type", opponent="random", opponent_frame_skip=100_000)
    obs, _ = env.reset(seed=3)
    games = env._arena.games
    games.worlds.players[0, 0]["minerals"] = 2000
    for _ in range(20):
        assert not (games.worlds.units[0]["order"][games.worlds.units[0]["alive"] == 1] == MAKE).any()
        before = int(games.worlds.players[0, 0]["spent"])
        alive = int((games.worlds.units[0, :16]["alive"] == 1).sum())
        obs, *_ = env.step([1, 0, 0, 0, 0])
        assert games.worlds.players[0, 0]["spent"] == before + (50 if alive < 16 else 0)
    assert alive == 16
    assert obs["action_mask"][:2].tolist() == [1, 0]
    assert obs["action_mask"][2:5].tolist() == [1, 0, 1]  # no barracks, either


def test_a_building_does_not_take_the_place_of_a_unit_that_was_paid_for():
    games, idle = begun(5, room=16, extra=10), np.zeros((1, 2, 1), np.int64)  # 15 units
    units = games.worlds.units[0]
    games.worlds.players[0, 0]["minerals"] = 500
    games.advance(np.array([[[2], [0]]]), 1)  # build barracks
    games.advance(np.array([[[1], [0]]]), 1)  # build a worker, meanwhile
    games.advance(idle, 400)
    assert not (units["order"][of_kind(games, BASE)] == MAKE).any()
    assert not of_kind(games, BARRACKS).any()


@pytest.mark.parametrize(("size", "room"), [(16, 256), (20, 4096)])
def test_both_sides_begin_with_the_same_units_where_the_map_is_too_small_for_all(size, room):
    extra = room - 6  # no more are allowed
    for seed in range(1, 6):
        games = begun(seed, size=size, room=room, extra=extra)
        ours, theirs = ([of_kind(games, kind, owner).sum() for kind in range(5)] for owner in (0, 1))
        assert ours == theirs
        assert 50 < ours[MELEE] + ours[RANGE] < extra


@pytest.mark.parametrize("game", ["mini", "flag", "tower"])
def test_a_game_at_its_last_tick_is_a_draw(game):
    games = begun(1, 1, game=game, max_ticks=130)
    games.watch(1000)
    assert (games.winner[0], games.ticks[0]) == (2, 130)
    assert games.worlds.players[0, 0]["reward"] == 0.0


def _far_off(seed: int, **settings: object) -> Games:
    """A game in which the troops of player 0 have left their base."""
    games = begun(seed, **settings)
    games.advance(np.array([[[COMMANDS.index("attack")], [0]]]), 100)
    return games


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_troops_that_are_told_once_to_defend_come_home_and_hit_who_comes_near(seed):
    games, idle = _far_off(seed, extra=2), np.zeros((1, 2, 1), np.int64)
    units = games.worlds.units[0]
    games.advance(np.array([[[COMMANDS.index("all_defend")], [0]]]), 1)
    assert (units["order"][troops(games)] == MOVE).all()
    games.advance(idle, 500)
    assert (units["order"][troops(games)] == IDLE).all()
    away = np.hypot(units["x"] - units["x"][0], units["y"] - units["y"][0])[troops(games)]
    assert (away > 2.5).all()  # workers have their way
    assert (away < 6.0).all()
    ours, foe = (np.flatnonzero(troops(games, owner))[0] for owner in (0, 1))
    place(games, foe, ours, 0.9)
    before = int(units["hp"][foe])
    games.advance(idle, 1)
    assert units["hp"][foe] < before


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("extra", [1, 12])
@pytest.mark.parametrize("place", ["home", "off the map"])
def test_troops_that_are_sent_where_there_is_no_place_stop_before_it(seed, extra, place):
    games, idle = _far_off(seed, extra=extra), np.zeros((1, 2, 1), np.int64)
    units, home = games.worlds.units[0], games.worlds.players[0, 0]
    to = (home["home_x"], home["home_y"]) if place == "home" else (-20.0, 3.0)
    for i in np.flatnonzero(troops(games)):
        units["order"][i], units["stuck"][i], units["to_x"][i], units["to_y"][i] = MOVE, 0, *to
    games.advance(idle, 500)
    assert (units["order"][troops(games)] == IDLE).all()
    away = np.hypot(units["x"] - to[0], units["y"] - to[1])[troops(games)]
    assert away.min() < (0.75 if place == "home" else 10.5)


def test_no_athlete_hits_a_base():
    games, idle = begun(3, game="flag"), np.zeros((1, 2, 1), np.int64)
    units = games.worlds.units[0]
    base = np.flatnonzero(of_kind(games, BASE, 1))[0]
    for i in np.flatnonzero(of_kind(games, ATHLETE)):
        units["order"][i], units["to_x"][i], units["to_y"][i] = MOVE, units["x"][base], units["y"][base]
    games.advance(idle, 400)
    reached = np.hypot(units["x"] - units["x"][base], units["y"] - units["y"][base])[of_kind(games, ATHLETE)]
    assert reached.min() < 1.0
    units["order"][of_kind(games, ATHLETE)] = IDLE
    games.advance(idle, 100)
    assert units["hp"][base] == 500


def test_every_wall_is_of_a_site_and_takes_one_tower():
    games = begun(1, 1, game="tower", room=200)
    games.worlds.players[0, 0]["minerals"] = 100_000
    for site in range(16):
        for _ in range(26):
            games.advance(np.array([[[1 + site]]]), 0)
    towers = games.worlds.units[0][of_kind(games, TOWER)]
    cells = np.stack([towers["y"], towers["x"]], 1) + games.settings.size / 2 - 0.5
    assert sorted(map(tuple, cells)) == sorted(map(tuple, np.argwhere(games.worlds.ground[0] < 0)))
