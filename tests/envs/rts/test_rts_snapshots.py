"""A snapshot is data from outside: what compiled functions could not bear is refused before they see it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rts_games import begun, wander

from sf.envs import UsageError
from sf.envs.rts import Replay, RtsEnv, RtsParallelEnv
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


# The field of a record, a value of it that cannot be, and the place of the record.
WRONG_FIELDS = {
    "games": [
        *(("half", 1e9), ("rules", 2), ("room", 10**9), ("first", 7), ("carrier", 10**9), ("carrier", 63)),
        ("max_ticks", 1 << 60),
    ],
    "players": [
        *(("num", 10**12, 2), ("num", 0), ("frame_skip", 0), ("ai", 99), ("ai", 3), ("home_x", np.nan)),
    ],
    "units": [
        *(("kind", 10**12, 1), ("kind", -5, 1), ("owner", 9), ("owner", 1), ("order", 12), ("target", 10**12, 1)),
        *(("hit_by", -9, 1), ("making", 77), ("order", 6), ("x", np.inf), ("y", 3.0), ("alive", 5), ("hp", 0)),
        ("hp", 10**6),
    ],
}
CHANGES = [
    *(_set(part, *field) for part, fields in WRONG_FIELDS.items() for field in fields),
    _circle,
    lambda worlds: worlds.cells.__setitem__((0, 19, 19), 63),  # a unit that is not there
    lambda worlds: worlds.cells.fill(-1),
    lambda worlds: worlds.ground.__setitem__((0, 3, 3), -1),
]


def test_a_state_that_cannot_be_is_refused_and_nothing_of_it_is_taken():
    for change in CHANGES:
        games, other = begun(3), begun(4)
        change(games.worlds)
        before = other.snapshot(0)
        with pytest.raises(UsageError, match="snapshot"):
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
