"""The games as environments: groups, Gymnasium, PettingZoo, and their settings."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play
from gymnasium.utils.env_checker import check_env

from sf.config.older import as_today
from sf.envs import EnvOptions, Planes, UsageError, describe, make_group
from sf.envs.registry import kwargs_against
from sf.envs.rts import RtsEnv, RtsParallelEnv
from sf.envs.rts.engine.orders import IDLE, MOVE
from sf.envs.rts.engine.units import MELEE
from sf.envs.rts.settings import Settings
from sf.envs.spaces.observations import obs_arrays


def _episodes(env_id: str, num_steps: int, **kwargs: object):
    options = EnvOptions(env_kwargs=json.dumps(kwargs))
    _, steps = play(make_group(env_id, 4, options, seed=1, first_env_idx=0), num_steps)
    return [episode for step in steps for episode in step.episodes]


def test_mini_rts_pays_one_at_the_end_and_says_who_has_won():
    episodes = _episodes("rts_mini", 120)
    assert len(episodes) > 5
    for episode in episodes:
        assert episode.episode_return == {0.0: -1.0, 0.5: 0.0, 1.0: 1.0}[episode.stats["won"]]
        assert episode.stats["true_objective"] == episode.stats["won"]
        assert 50 * (episode.num_steps - 1) < episode.num_frames == episode.stats["ticks"] <= 50 * episode.num_steps


def test_a_seed_gives_the_same_games_without_one_they_differ_and_what_is_none_is_refused():
    for make in (RtsEnv, RtsParallelEnv):
        begins = []
        for env in (make(max_ticks=50), make(max_ticks=50)):
            for _ in range(2):
                env.reset()
                begins.append(env.snapshot())
        assert len(set(begins)) == 4
        env, other = make(), make()
        other.reset()
        for each in (env, other):
            each.reset(seed=np.int64(7))
            each.reset()
        assert env.snapshot() == other.snapshot()
        for seed in (-1, 2**70, "one"):
            with pytest.raises(UsageError, match="seed is"):
                env.reset(seed=seed)


def test_in_a_match_one_wins_what_the_other_loses():
    episodes = _episodes("rts_mini_match", 150)
    of_first, of_second = episodes[::2], episodes[1::2]
    for first, second in zip(of_first, of_second, strict=True):
        assert (first.actor_idx + 1, first.stats["won"]) == (second.actor_idx, 1 - second.stats["won"])
        assert first.episode_return == -second.episode_return


def test_in_capture_the_flag_the_way_home_pays_one_and_the_score_one():
    env = RtsEnv("flag", opponent="random", opponent_frame_skip=100_000)  # it never acts
    env.reset(seed=2)
    unmoved = env._arena.games.worlds.games["flag_share"][0]
    total, is_over, steps = 0.0, False, 0
    while not is_over:
        _, reward, is_over, _, info = env.step(1 + steps % 2)  # get the flag, bring it home
        total, steps = total + reward, steps + 1
    assert info["episode_stats"]["score"] == 5
    assert info["episode_stats"]["won"] == 1.0
    assert total == pytest.approx(10.0, abs=0.7 + abs(unmoved))


def test_tower_defense_pays_for_leaks_and_for_the_end():
    for episode in _episodes("rts_tower", 80):
        won, leaks = episode.stats["won"], episode.stats["leaks"]
        assert episode.episode_return == pytest.approx(won - 0.1 * leaks)
        assert (leaks >= 10) == (won == 0.0)


def test_a_tower_costs_50_and_stands_where_the_mask_says():
    env = RtsEnv("tower")
    obs, _ = env.reset(seed=3)
    assert obs["action_mask"].sum() == 1 + 16
    site = env.action_names.index("tower_at_site_5")
    env.step(site)
    obs, *_ = env.step(site)
    towers = obs["observation"][env._arena.controls.plane_names.index("own_tower")]
    assert towers.sum() == 20  # tenths
    player = env._arena.games.worlds.players[0, 0]
    assert player["spent"] == 100
    assert player["minerals"] == 10 * player["kills"]


def test_the_spaces_are_planes_and_commands():
    spec = describe("rts_mini", EnvOptions())
    assert isinstance(spec.obs_space["obs"], Planes)
    assert (spec.obs_space["obs"].shape, spec.obs_space["obs"].step) == ((15, 20, 20), 0.1)
    assert spec.action_space == gym.spaces.Discrete(9)
    assert (spec.num_agents, spec.frameskip) == (1, 50)
    assert [len(of_head) for of_head in spec.action_names] == [9]
    assert kwargs_against("rts_mini", "SIMPLE") == {"opponent": "simple"}
    spec = describe("rts_flag_match", EnvOptions(env_kwargs='{"history": 3, "actions": "by_type"}'))
    assert spec.obs_space["observation"].shape == (3 * 9, 20, 20)
    assert spec.action_space == gym.spaces.MultiDiscrete([2, 5])
    assert (spec.num_agents, spec.frameskip) == (2, 10)


def test_a_history_shows_the_newest_first_and_ends_at_the_beginning_of_an_episode():
    env = RtsEnv(history=3)
    first, _ = env.reset(seed=1)
    assert not first[15:].any()
    second, *_ = env.step(1)
    np.testing.assert_array_equal(second[15:], np.concatenate([first[:15], np.zeros_like(first[:15])]))
    assert not env.reset()[0][15:].any()


@pytest.mark.parametrize("game", ["mini", "flag", "tower"])
def test_gymnasium_checks_the_environment(game):
    env = RtsEnv(game, render_mode="rgb_array")
    assert len(env.action_names) == env.action_space.n
    with pytest.warns(UserWarning, match="alternative render modes"):
        check_env(env)


def test_pettingzoo_checks_the_match():
    checks = pytest.importorskip("pettingzoo.test")
    checks.parallel_api_test(RtsParallelEnv("flag", max_ticks=500), 120)


def test_help_lets_the_ai_play_the_first_ticks_of_an_episode():
    options = EnvOptions(env_options={"help": 800})
    group = make_group("rts_mini", 30, options, seed=1, first_env_idx=0)
    games, obs = group.arena.games, obs_arrays(group.spec.obs_space, 30)
    rows = {key: list(each) for key, each in obs.items()}
    group.reset(rows)
    assert 300 < games.ticks.mean() < 500
    assert games.ticks.max() <= 800
    group.set_ranges(0, {"help": (0, 0)})
    group.arena.begin(np.ones(30, bool))
    assert games.ticks[0] == 0
    assert games.ticks[1:].mean() > 300
    assert describe("rts_mini_match", EnvOptions()).schedulable == {}
    assert as_today({"env": "rts_mini", "env_kwargs": '{"curriculum": 9, "room": 64}'})["env_kwargs"] == '{"room": 64}'


def test_a_mixture_draws_its_opponents_and_says_how_each_fared():
    episodes = _episodes("rts_mini", 150, opponent="mixed")
    kinds = [{"won_against_simple", "won_against_hit_and_run"} & set(episode.stats) for episode in episodes]
    assert {name for kind in kinds for name in kind} == {"won_against_simple", "won_against_hit_and_run"}
    assert all(len(kind) == 1 for kind in kinds)
    assert Settings(opponent={"simple": 3, "random": 1}).mixture == {"simple": 0.75, "random": 0.25}


def test_a_command_and_a_unit_of_ones_own_take_a_few_lines(own_rts):
    env = own_rts["retreating"]()
    assert env.action_names[9] == "retreat"
    env.reset(seed=3)
    env._arena.games.worlds.players["minerals"] = 1000
    for action in (2, 2, 2, 2, 2, 2, 3, 0, 0, 3, 0, 0, 6, 9):
        env.step(action)
    units = env._arena.games.worlds.units[0][:64]
    troops = units[(units["alive"] == 1) & (units["kind"] == MELEE)]
    home = env._arena.games.worlds.players[0, 0]
    assert len(troops) > 0
    assert set(troops["order"]) <= {MOVE, IDLE}
    assert (troops["to_x"] == home["home_x"]).any()

    env = own_rts["scouts"]()
    assert "barracks:build_scout" in env.action_names
    assert "scout:hit_and_run" in env.action_names
    obs, _ = env.reset(seed=3)
    assert obs["observation"].shape == (17, 20, 20)
    env._arena.games.worlds.players["minerals"] = 1000
    for _ in range(14):
        obs, *_ = env.step([0, 1, 3, 0, 0, 0])
    assert obs["observation"][env._arena.controls.plane_names.index("own_scout")].sum() > 0


@pytest.fixture(scope="module")
def own_rts():
    """What docs/examples/own_rts.py defines."""
    return runpy.run_path(str(Path(__file__).parents[3] / "docs" / "examples" / "own_rts.py"))
