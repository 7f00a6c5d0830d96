import maps
import numpy as np
import pytest
from scripted_doom import ScriptedEngine

from sf.envs.doom.game import DoomEnv
from sf.envs.doom.scenarios import Scenario, config_path
from sf.envs.doom.shaping import MEDIKITS
from sf.envs.group import Episode
from sf.envs.spaces.actions import ActionSpec

NOTHING, ATTACK = 0, 3  # options of doom_basic's head


@pytest.mark.parametrize("env_id", ["doom_basic", "doom_deathmatch_monsters"])
def test_the_observations_are_in_the_spec_and_show_something(stage, env_id):
    game = stage(env_id)
    sizes = ActionSpec.of(game.group.spec.action_space).discrete_sizes
    for _ in range(3):
        assert game.group.spec.obs_space.contains({key: rows[0] for key, rows in game.obs.items()})
        assert len(np.unique(game.image())) > 20
        game.step(tuple(size - 1 for size in sizes))


def test_at_the_time_limit_the_final_frame_comes_first_and_the_reset_one_step_later(stage):
    game = stage()
    ordinary = {"terminated": False, "truncated": False, "valid": True, "first": False}
    for _ in range(74):
        assert game.step((NOTHING,)) == []
        assert game.flags() == ordinary
    before = game.image()

    [episode] = game.step((NOTHING,))
    assert game.flags() == ordinary | {"truncated": True}
    assert game.result.reward[0] == pytest.approx(-0.04)
    final = game.image()
    assert np.abs(final.astype(int) - before).mean() < 20  # the same scene four tics later

    assert game.step((ATTACK,)) == []
    assert game.flags() == ordinary | {"valid": False, "first": True}
    assert game.result.reward[0] == 0

    game.step((NOTHING,))
    assert game.flags() == ordinary
    assert (episode.episode_return, episode.num_steps, episode.num_frames) == (-300, 75, 300)
    assert episode.stats["shaped_return"] == pytest.approx(-3)


def test_a_game_that_is_cut_begins_anew_with_the_next_step_and_is_no_episode(stage):
    game = stage(num_envs=2)
    ordinary = {"terminated": False, "truncated": False, "valid": True, "first": False}
    for _ in range(10):
        game.step((NOTHING,), (NOTHING,))
    game.group.cut(1)
    assert game.step((ATTACK,), (ATTACK,)) == []
    assert game.flags(0) == ordinary
    assert game.flags(1) == ordinary | {"valid": False, "first": True}
    assert game.result.reward[1] == 0
    [first] = [episode for _ in range(64) for episode in game.step((NOTHING,), (NOTHING,))]
    assert first.actor_idx == 0
    [second] = [episode for _ in range(11) for episode in game.step((NOTHING,), (NOTHING,))]
    assert (second.actor_idx, second.num_steps, second.episode_return) == (1, 75, -300)


def test_a_game_is_the_same_in_whatever_group_it_is_played_and_the_time_limit_cuts_its_last_step(stage):
    pair, alone = stage(num_envs=2, first_env_idx=6, env_frameskip=70), stage(first_env_idx=7, env_frameskip=70)
    assert (pair.image(0) != pair.image(1)).any()
    for _ in range(4):
        pair.step((1,), (NOTHING,))
        alone.step((NOTHING,))
        np.testing.assert_array_equal(pair.image(1), alone.image())
    [episode] = alone.step((NOTHING,))
    assert (episode.num_steps, episode.num_frames, episode.episode_return) == (5, 300, -300)
    assert alone.result.reward[0] == pytest.approx(-0.2)


def test_after_a_kill_the_next_episode_begins_at_once(stage):
    game = stage()
    rng = np.random.default_rng(0)
    episodes: list[Episode] = []
    rewards: list[float] = []
    while not game.result.terminated[0]:
        episodes = game.step((int(rng.integers(4)),))
        rewards.append(game.result.reward[0])
        if not game.result.valid[0]:  # the time limit came first: another try
            rewards.clear()
    assert game.flags() == {"terminated": True, "truncated": False, "valid": True, "first": True}
    [episode] = episodes
    assert episode.num_steps == len(rewards) < 75
    assert 0 < episode.num_frames <= 4 * episode.num_steps
    assert rewards[-1] > 0.5  # 101 for the monster, in hundredths, less the living reward
    assert episode.episode_return == pytest.approx(100 * sum(rewards), rel=1e-4)


def test_the_true_objective_of_battle_is_kills_and_shaping_is_no_part_of_the_return(stage):
    if not maps.ARE_HERE:
        pytest.skip("the maps of the extra are not installed")
    shaped, raw = stage("doom_battle"), stage("doom_battle", doom_shaping=False)
    assert shaped.obs["measurements"][0][2] == pytest.approx(100 / 30)  # health
    shoot = (0, 0, 1, 0, 7)
    ended: list[tuple[Episode, Episode]] = []
    rewards = []
    while not ended:
        ended = list(zip(shaped.step(shoot), raw.step(shoot), strict=True))
        rewards.append((shaped.result.reward[0], raw.result.reward[0]))
        np.testing.assert_array_equal(shaped.image(), raw.image())
        np.testing.assert_array_equal(shaped.obs["measurements"][0], raw.obs["measurements"][0])
    [(with_shaping, without)] = ended
    assert with_shaping.episode_return == without.episode_return == with_shaping.stats["kills"]
    assert with_shaping.stats["true_objective"] == with_shaping.stats["kills"]
    assert with_shaping.stats["shaped_return"] == pytest.approx(sum(r for r, _ in rewards), abs=1e-4)
    assert without.stats["shaped_return"] == without.episode_return == sum(r for _, r in rewards)
    assert with_shaping.stats["shaped_return"] != with_shaping.episode_return


def test_the_last_step_has_no_shaped_reward_and_the_objective_may_be_kills(monkeypatch):
    monkeypatch.setattr("sf.envs.doom.game.start_engine", lambda game: None)
    engine = ScriptedEngine(timeout=8)
    scenario = Scenario("basic.cfg", (), reward_scale=0.01, shaping=MEDIKITS, kills_are_objective=True)
    game = DoomEnv(scenario, config_path("doom_basic"), 4, True, 0, lambda: engine)
    rows = [{"obs": np.zeros((72, 128, 3), np.uint8)}]
    game.reset(rows)
    engine.values["HEALTH"] = 25
    assert game.step([()], rows) == ([pytest.approx(0.04 + 1)], False, False)
    engine.values |= {"HEALTH": 50, "KILLCOUNT": 3}
    assert game.step([()], rows) == ([pytest.approx(0.04)], False, True)
    [episode] = game.episodes(0)
    assert (episode.episode_return, episode.stats["shaped_return"]) == (8, pytest.approx(1.08))
    assert (episode.stats["kills"], episode.stats["true_objective"]) == (3, 3)


def test_equal_seeds_and_actions_give_equal_games(stage):
    one, two, other = stage("doom_defend_the_center"), stage("doom_defend_the_center"), stage(seed=4)
    rng = np.random.default_rng(1)
    for _ in range(60):
        action = (int(rng.integers(3)), int(rng.integers(2)))
        one.step(action)
        two.step(action)
        np.testing.assert_array_equal(one.image(), two.image())
        assert one.result.reward[0] == two.result.reward[0]
        assert one.flags() == two.flags()
    assert (other.image() != stage(seed=5).image()).any()
