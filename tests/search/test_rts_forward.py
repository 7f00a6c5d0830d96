"""Searches play on in copies of strategy games, which are what the games would become."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from compiled_engine import compile_engine

from sf import envs
from sf.envs import EnvOptions, StepResult, UsageError
from sf.envs.group import CHANCE, OVER
from sf.envs.rts.engine.units import UNITS
from sf.envs.rts.forward import NUM_OUTCOMES
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.contestants import find_contest
from sf.evaluation.play.episodes import Play
from sf.evaluation.play.games.search_player import judge_of
from sf.evaluation.play.opponents import Opponent
from sf.search.search import Search, SearchSettings
from sf.tools.commands.evaluate import EvalFlags

GAMES = [
    ("rts_mini", '{"opponent": "simple", "history": 3}'),
    ("rts_mini", '{"opponent": "hit_and_run", "extra": 9}'),
    ("rts_mini", '{"opponent": "mixed", "frame_skip": 20, "size": 32, "room": 24}'),
    ("rts_flag", '{"max_ticks": 1250}'),
    ("rts_tower", "{}"),
]


@pytest.fixture(scope="module", autouse=True)
def _engine():
    compile_engine()


def group_of(env, kwargs="{}", seed=3):
    group = envs.make_group(env, 1, EnvOptions(env_kwargs=kwargs), seed=seed, first_env_idx=0)
    rows = rows_of(group, 1)
    group.reset(rows)
    return group, rows


def rows_of(group, num):
    return {key: list(rows) for key, rows in obs_arrays(group.spec.obs_space, num).items()}


def stepped(group, rows, action):
    result = StepResult.empty(1)
    group.step(np.array([[action]], np.int32), np.zeros((1, 0), np.float32), rows, result)
    return result


def state(worlds, entry):
    """Returns all of a game, but random numbers, and of dead units no more than that they are dead."""
    game, players, units = worlds.games[entry].copy(), worlds.players[entry].copy(), worlds.units[entry].copy()
    game["rng"], players["rng"] = 0, 0
    is_dead = units["alive"] == 0
    if game["rules"] == 1:  # dead athletes come back after a while
        is_dead &= units["timer"] <= 0
    units[is_dead] = 0
    return b"".join(part.tobytes() for part in (game, players, units, worlds.cells[entry], worlds.ground[entry]))


def searched(model, state, num_simulations):
    model.begin(0, state)
    search = Search(model, SearchSettings(num_simulations, playout_share=1.0), 1)
    search.run([0], judge_of(None, model))
    return search.read(0)


@pytest.mark.parametrize(("env", "kwargs"), GAMES)
def test_positions_are_those_of_the_game_with_these_actions_to_the_bit(env, kwargs):
    """Also in entries that have held other positions. Neither these nor random play change the game."""
    group, rows = group_of(env, kwargs)
    worlds = group.arena.games.worlds
    model, seen = group.forward_model(seed=5), rows_of(group, 1)
    rng = np.random.default_rng(0)
    num_ends = num_paid = 0
    for begin in range(0, 130, 10):
        model.begin(0, group.game(0))
        at = model.play([0], [-1], [-1], [0])
        for place in range(1, 11):
            if "action_mask" in rows:
                assert at.choices.tolist() == np.flatnonzero(rows["action_mask"][0]).tolist()
            before = worlds.games[0].tobytes() + worlds.units[0].tobytes()
            model.play_out([0], [place - 1])
            action = int(rng.choice(at.choices))
            at = model.play([0], [place - 1], [action], [place])
            assert worlds.games[0].tobytes() + worlds.units[0].tobytes() == before
            result = stepped(group, rows, action)
            assert at.reward[0] == result.reward[0]
            assert (at.mover[0] == OVER) == result.terminated[0]
            num_paid += at.reward[0] != 0
            if result.terminated[0]:
                assert not len(at.choices)
                num_ends += 1
                break
            assert state(model._worlds, model._places[0][place].entry) == state(worlds, 0)
            model.show([0], [place], seen)
            for key, (row,) in rows.items():
                np.testing.assert_array_equal(seen[key][0], row, f"{key} after {begin + place} decisions")
    assert num_paid
    assert num_ends
    assert len(model._worlds.games) == 64  # entries are used again


def test_what_a_random_opponent_does_is_chance():
    group, rows = group_of("rts_mini", '{"opponent": "random", "frame_skip": 25}')
    model = group.forward_model(seed=5)
    for _ in range(40):
        stepped(group, rows, 3)
    model.begin(0, group.game(0))
    at = model.play([0, 0], [-1, 0], [-1, 3], [0, 1])  # the AI commands every other decision
    assert at.mover.tolist() == [0, 0]
    at = model.play([0], [1], [3], [2])
    assert at.mover.tolist() == [CHANCE]
    assert at.choices.tolist() == list(range(NUM_OUTCOMES))
    assert at.odds.tolist() == [1 / NUM_OUTCOMES] * NUM_OUTCOMES
    at = model.play([0] * 8, [2] * 8, range(8), range(3, 11))
    assert at.mover.tolist() == [0] * 8
    assert len({state(model._worlds, place.entry) for place in model._places[0][3:]}) > 2
    model.keep(0, np.array([1, 2, 5]))
    at = model.play([0] * 2, [1, 2], [0, 3], [3, 4])
    assert at.mover.tolist() == [0, 0]


@pytest.mark.parametrize("env", ["rts_mini", "rts_flag", "rts_tower"])
def test_a_search_never_changes_the_game(env):
    group, rows = group_of(env)
    model = group.forward_model(seed=5)
    for _ in range(8):
        stepped(group, rows, 1)
        before = group.arena.games.snapshot(0)
        root = searched(model, group.game(0), 40)
        assert root.visits.sum() == 40
        assert group.arena.games.snapshot(0) == before


def test_a_search_finds_the_command_that_wins():
    """Seven attackers destroy a base that two hits are enough for, within the decision in which they are sent there."""
    group, _ = group_of("rts_mini", '{"extra": 6, "frame_skip": 250}')
    worlds = group.arena.games.worlds
    base = worlds.units[0, 64]
    assert UNITS[base["kind"]].name == "base"
    base["hp"] = 20
    root = searched(group.forward_model(seed=5), group.game(0), 200)
    attack = group.spec.action_names[0].index("attack")
    assert root.value[root.action == attack] == root.value.max() == 1.0


def player(name, env, kwargs="{}", sees_all=True):
    options = EnvOptions(env_kwargs=kwargs, search_sees_all=sees_all)
    spec = envs.describe(env, options)
    return Opponent.named(name, env, options, spec.native_obs_space, spec.action_space).player()


def test_a_player_that_searches_holds_more_waves_than_random_commands():
    returns = {}
    for name in ("random", "search:24"):
        group = envs.make_group("rts_tower", 2, EnvOptions(), seed=1, first_env_idx=0)
        going = Play(group, [player(name, "rts_tower")], np.zeros((2, 1), int), range(2), 2, 1, deterministic=False)
        returns[name] = []
        while not going.is_done:
            returns[name] += [episode.episode_return for episode in going.step()]
    assert np.mean(returns["search:24"]) > 0.5 > np.mean(returns["random"]) + 0.5


def test_a_policy_that_searches_plays_where_the_flag_allows_it():
    flags = EvalFlags(run=Path("zoo/rts_mini"), against=("search:4",), search_sees_all=True)
    contest = find_contest(flags.run, flags.against, "latest", None, flags.overrides).searching(SearchSettings(24))
    players = [each.player() for each in contest.players.values()]
    group = envs.make_group("rts_mini", 2, contest.options, seed=1, first_env_idx=0)
    going = Play(group, players, np.array([[0], [1]]), range(2), 2, 1, deterministic=False)
    for _ in range(3):
        going.step()
        assert not np.isnan(going.value).any()
    with pytest.raises(UsageError, match="--search_sees_all true"):
        find_contest(flags.run, (), "latest", None).searching(SearchSettings(24))


@pytest.mark.parametrize(
    ("env", "kwargs", "sees_all", "match"),
    [
        ("rts_mini", "{}", False, "--search_sees_all true"),
        ("rts_flag", "{}", False, "--search_sees_all true"),
        ("rts_mini", '{"actions": "by_type"}', True, "one Discrete"),
        ("rts_mini_match", "{}", True, "2 agents"),
    ],
)
def test_what_cannot_be_searched_is_refused(env, kwargs, sees_all, match):
    with pytest.raises(UsageError, match=match):
        player("search:5", env, kwargs, sees_all)
