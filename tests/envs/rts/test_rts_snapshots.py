"""A snapshot is data from outside: what compiled functions could not bear is refused before they see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from rts_games import begun, wander

from sf.envs import UsageError
from sf.envs.rts import UNITS, Replay, RtsEnv, RtsParallelEnv
from sf.envs.rts.engine.state import Worlds
from sf.envs.rts.games import Games
from sf.envs.rts.settings import Settings


def _circle(worlds: Worlds) -> None:
    """The unit in the first cell that has one follows itself."""
    worlds.units["next"][0, worlds.cells.max()] = worlds.cells.max()


def _set(part: str, field: str, value: float, at: int = 0) -> Callable[[Worlds], None]:
    def change(worlds: Worlds) -> None:
        rows = getattr(worlds, part)
        (rows if rows.ndim == 1 else rows[0])[field][at] = value

    return change


def _emptied(worlds: Worlds) -> None:
    worlds.cells[:] = -1


CHANGES = {
    "the size of the map": _set("games", "half", 1e9),
    "another game": _set("games", "rules", 2),
    "the room": _set("games", "room", 10**9),
    "who moves first": _set("games", "first", 7),
    "the unit with the flag": _set("games", "carrier", 10**9),
    "the flag with nobody": _set("games", "carrier", 63),
    "the longest time": _set("games", "max_ticks", 1 << 60),
    "how many units there are": _set("players", "num", 10**12, at=2),
    "fewer units than there are": _set("players", "num", 0),
    "ticks of an AI that are none": _set("players", "frame_skip", 0),
    "an AI that is none": _set("players", "ai", 99),
    "an AI of another game": _set("players", "ai", 3),
    "a home nowhere": _set("players", "home_x", np.nan),
    "a kind": _set("units", "kind", 10**12, at=1),
    "a kind below": _set("units", "kind", -5, at=1),
    "an owner": _set("units", "owner", 9),
    "the other owner": _set("units", "owner", 1),
    "an order": _set("units", "order", 12),
    "a target": _set("units", "target", 10**12, at=1),
    "who has hit it": _set("units", "hit_by", -9, at=1),
    "what it makes": _set("units", "making", 77),
    "making nothing": _set("units", "order", 6),
    "no place": _set("units", "x", np.inf),
    "another place": _set("units", "y", 3.0),
    "half alive": _set("units", "alive", 5),
    "no hit points": _set("units", "hp", 0),
    "more hit points": _set("units", "hp", 10**6),
    "a circle of units": _circle,
    "a unit that is not there": lambda worlds: worlds.cells.__setitem__((0, 19, 19), 63),
    "a unit in no list": _emptied,
    "walls": lambda worlds: worlds.ground.__setitem__((0, 3, 3), -1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_state_that_cannot_be_is_refused_and_nothing_of_it_is_taken(change):
    games, other = begun(3), begun(4)
    change(games.worlds)
    before = other.snapshot(0)
    with pytest.raises(UsageError, match=r"this is no snapshot of a game: .*; take one"):
        other.restore(0, games.snapshot(0))
    assert other.snapshot(0) == before


@pytest.mark.parametrize("game", ["mini", "flag", "tower"])
def test_a_state_of_a_game_that_has_not_begun_or_is_over_can_be(game):
    games = Games(Settings(game=game, max_ticks=700), [1], 1)
    for _ in range(2):
        Games(games.settings, [1], 1).restore(0, games.snapshot(0))
        games.begin(np.ones(1, bool))
        wander(games, 20, 1)
    assert games.winner[0] >= 0


def test_a_replay_that_begins_in_a_state_that_cannot_be_is_refused(tmp_path):
    env = RtsEnv(replays=str(tmp_path), max_ticks=100)
    env.reset(seed=1)
    env.step(0)
    env.step(0)
    [path] = tmp_path.iterdir()
    games = Games(Settings(max_ticks=100), [1], 1)
    games.restore(0, Replay.load(path).start)
    games.worlds.games["room"] = 10**9
    dataclasses.replace(Replay.load(path), start=games.snapshot(0)).save(path)
    with pytest.raises(UsageError, match="room of a game is not in 64 to 64"):
        RtsEnv(replay=str(path), max_ticks=100)


def test_a_snapshot_of_another_game_or_of_other_units_is_refused():
    stronger = tuple(unit._replace(hp=60) if unit.name == "worker" else unit for unit in UNITS)
    other, env = RtsEnv(units=stronger), RtsEnv()
    env.reset(seed=1)
    other.reset(seed=1)
    for snapshot in (begun(1, game="flag").snapshot(0), other.snapshot()):
        with pytest.raises(UsageError, match="with the game, the settings and the units that it was taken from"):
            env.restore(snapshot)


def test_the_opponent_of_a_restored_game_is_the_one_that_its_figure_names():
    env = RtsEnv(opponent="mixed", max_ticks=100)
    found = set()
    for seed in range(8):
        env.reset(seed=seed)
        snapshot, opponent = env.snapshot(), env._arena._opponents[0]
        env.reset(seed=seed + 1)
        env.restore(snapshot)
        env.step(0)
        *_, info = env.step(0)
        assert f"won_against_{opponent}" in info["episode_stats"]
        found.add(opponent)
    assert found == {"simple", "hit_and_run"}


def test_a_restored_game_keeps_its_ticks_and_the_next_one_has_those_of_the_settings():
    short, env, fresh = RtsEnv(max_ticks=100, opponent_frame_skip=25), RtsEnv(), RtsEnv()
    short.reset(seed=1)
    env.reset(seed=2)
    env.restore(short.snapshot())
    assert not env.step(0)[2]
    assert env.step(0)[2]
    env.reset(seed=5)
    fresh.reset(seed=5)
    assert env.snapshot() == fresh.snapshot()


def test_one_player_goes_on_from_a_match_against_an_opponent_of_the_settings(tmp_path):
    match = RtsParallelEnv()
    match.reset(seed=1)
    for opponent in ("simple", "hit_and_run"):
        env = RtsEnv(opponent={opponent: 1, "random": 0}, replays=str(tmp_path / opponent))
        env.reset(seed=2)
        env.restore(match.snapshot())
        is_over = False
        while not is_over:
            *_, is_over, _, info = env.step(0)
        assert info["episode_stats"][f"won_against_{opponent}"] == 0.0
        [path] = (tmp_path / opponent).iterdir()
        *_, games = Replay.load(path).games()
        assert games.winner[0] == 1


def test_both_players_go_on_from_a_snapshot():
    match, other = RtsParallelEnv(), RtsParallelEnv()
    match.reset(seed=1)
    other.reset(seed=2)
    obs, *_ = match.step({"player_0": 1, "player_1": 2})
    np.testing.assert_array_equal(other.restore(match.snapshot())["player_1"], obs["player_1"])
