"""What holds in every game, whatever the players do, and the lock of the first start, which compiles the engine."""

from __future__ import annotations

import errno
import fcntl

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rts_games import alive, begun, mirrored, random_choices, require_same, wander

from sf.envs.rts.engine.compiled import alone
from sf.envs.rts.engine.units import RADIUS, RESOURCE, UNITS
from sf.envs.rts.games import Games, command_of
from sf.envs.rts.settings import Settings

SEEDS = st.integers(1, 2**31 - 1)
GAMES = st.sampled_from(["mini", "flag", "tower"])
FEW = settings(max_examples=12)


def _num_players(game: str) -> int:
    return 1 if game == "tower" else 2


def _more(game: str, extra: int) -> dict[str, int]:
    """More troops, in the game that has them."""
    return {"extra": extra} if game == "mini" else {}


@FEW
@given(SEEDS, GAMES, st.sampled_from(["global", "by_type"]))
def test_no_unit_is_inside_another_in_a_wall_or_off_the_map(seed, game, actions):
    games = begun(
        seed, _num_players(game), game=game, actions="global" if game == "tower" else actions, **_more(game, 4)
    )
    has_body = games.worlds.kinds["has_body"]
    for part in range(12):
        wander(games, 1, seed + part, ticks=37)
        units = alive(games)
        bodies = units[has_body[units["kind"]] == 1]
        dx, dy = (np.subtract.outer(bodies[axis], bodies[axis]) for axis in ("x", "y"))
        apart = dx * dx + dy * dy
        np.fill_diagonal(apart, np.inf)
        assert len(bodies) < 2 or apart.min() >= (2 * RADIUS) ** 2
        edge = games.settings.size / 2 - RADIUS
        assert (abs(bodies["x"]) <= edge).all()
        assert (abs(bodies["y"]) <= edge).all()
        cells = (int(unit[axis] + games.settings.size / 2) for unit in units for axis in ("y", "x"))
        for unit, row, column in zip(units, *[iter(cells)] * 2, strict=True):
            walks = UNITS[unit["kind"]].speed > 0
            assert not walks or games.worlds.ground[0, row, column] >= 0


@FEW
@given(SEEDS, st.sampled_from(["global", "by_type"]))
def test_minerals_are_in_mines_on_workers_in_store_spent_or_lost(seed, actions):
    def minerals(games: Games) -> int:
        units, players = alive(games), games.worlds.players[0]
        in_mines = units["hp"][units["kind"] == RESOURCE].sum() + units["load"].sum()
        return int(in_mines + players["minerals"].sum() + players["spent"].sum() + players["lost"].sum())

    games = begun(seed, actions=actions)
    before = minerals(games)
    spent = 0
    for part in range(25):
        wander(games, 2, seed + part)
        assert minerals(games) == before
        assert (games.worlds.players[0]["minerals"] >= 0).all()
        spent = games.worlds.players[0]["spent"].sum()
    assert spent > 0


@FEW
@given(SEEDS, st.sampled_from(["mini", "flag"]), st.sampled_from(["global", "by_type"]))
def test_a_mirrored_start_gives_the_mirrored_game_to_the_bit(seed, game, actions):
    games = begun(seed, game=game, actions=actions, **_more(game, 3))
    wander(games, 12, seed, ticks=23)
    other, rng = mirrored(games), np.random.default_rng(seed)
    for _ in range(12):
        choices = random_choices(games, rng)
        rewards, _ = games.advance(choices, 50)
        of_other, _ = other.advance(choices[:, ::-1].copy(), 50)
        np.testing.assert_array_equal(rewards, of_other[:, ::-1])
    require_same(mirrored(games), other)


@FEW
@given(SEEDS, GAMES, st.integers(0, 30))
def test_a_game_that_goes_on_from_a_snapshot_is_the_same_to_the_bit(seed, game, num_decisions):
    games = begun(seed, _num_players(game), game=game)
    wander(games, num_decisions, seed)
    other = Games(games.settings, [1], games.num_players)
    other.restore(0, games.snapshot(0))
    wander(games, 15, seed + 1, ticks=31)
    wander(other, 15, seed + 1, ticks=31)
    assert games.snapshot(0) == other.snapshot(0)


def test_many_ticks_at_once_are_as_many_single_ones():
    games, other = begun(5, 0), begun(5, 0)
    for each in (games, other):
        each.set_ai(0, 0, "simple")
        each.set_ai(0, 1, "hit_and_run")
    assert games.watch(700) == sum(other.watch(1) for _ in range(700))
    assert games.snapshot(0) == other.snapshot(0)


def test_a_game_of_a_group_does_not_know_of_the_others():
    group = Games(Settings(), [3, 4, 5], 0)
    group.begin(np.ones(3, bool))
    alone = begun(4, 0)
    for games in (group, alone):
        for g in range(games.num):
            games.set_ai(g, 0, "random")
            games.set_ai(g, 1, "simple")
        games.watch(1500)
    assert group.snapshot(1) == alone.snapshot(0)


@pytest.mark.parametrize("ai", ["simple", "hit_and_run", "flag"])
def test_an_ai_against_itself_wins_about_as_often_as_it_loses(ai):
    wins, draws = _wins(ai, 100)
    assert abs(wins - 0.5) < 0.15  # three standard deviations
    assert draws < 0.1


def _wins(ai: str, num: int) -> tuple[float, float]:
    """The share of games that player 0 wins, where draws count as half, and the share of draws."""
    games = Games(Settings(game="flag" if ai == "flag" else "mini"), range(1, num + 1), 0)
    for g in range(num):
        games.set_ai(g, 0, ai)
        games.set_ai(g, 1, ai)
    games.begin(np.ones(num, bool))
    games.watch(games.settings.most_ticks)
    draws = float(np.mean(games.winner == 2))
    return float(np.mean(games.winner == 0)) + draws / 2, draws


@pytest.mark.parametrize("ai", ["simple", "hit_and_run"])
def test_an_ai_that_is_named_among_the_choices_plays_as_it_does_by_itself(ai):
    named, by_itself = begun(3), begun(3)
    for player in (0, 1):
        by_itself.set_ai(0, player, ai)
    choices = np.full((1, 2, 1), command_of(ai))
    for _ in range(30):
        named.advance(choices, 50)
        by_itself.watch(50)
    assert named.ticks[0] == by_itself.ticks[0] == 1500
    for field in named.worlds.units.dtype.names:
        assert np.array_equal(named.worlds.units[field], by_itself.worlds.units[field]), field


def test_the_lock_of_the_first_start_lies_in_the_users_cache_and_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("whole")
    with alone():
        assert (tmp_path / "sf" / "rts.lock").exists()
    (tmp_path / "sf" / "rts.lock").unlink()
    (tmp_path / "sf" / "rts.lock").symlink_to(victim)
    with alone():  # without a lock
        assert victim.read_text() == "whole"

    def no_locks(lock, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)  # as on some disks
    with alone():
        pass


def test_a_player_whose_ai_is_no_longer_named_commands_again():
    games, others = begun(3), begun(3)
    games.advance(np.array([[[command_of("simple")], [0]]]), 50)
    assert games.worlds.players["ai"][0, 0] != 0
    others.restore(0, games.snapshot(0))
    for each in (games, others):
        each.advance(np.zeros((1, 2, 1), np.int64), 50)
    assert games.worlds.players["ai"][0, :2].tolist() == [0, 0]
    assert games.snapshot(0) == others.snapshot(0)
