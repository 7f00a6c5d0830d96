from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from group_driver import Step, play

from sf.envs import EnvOptions, describe, make_group
from sf.envs.atari.group import ENV_IDS


def _play(env_id: str, num_steps: int, num_envs: int = 2, **options: object) -> list[Step]:
    return play(make_group(env_id, num_envs, EnvOptions(**options), seed=0, first_env_idx=0), num_steps)[1]


def test_every_game_has_its_three_names() -> None:
    assert {"atari_breakout", "ALE/Breakout-v5", "BreakoutNoFrameskip-v4", "atari_ms_pacman"} <= set(ENV_IDS)
    assert sum(env_id.startswith("atari_") for env_id in ENV_IDS) > 100


def test_observations_are_stacks_of_84_by_84_grey_frames_oldest_first() -> None:
    steps = _play("atari_pong", 12)
    assert describe("atari_pong", EnvOptions()).obs_space["obs"].shape == (4, 84, 84)
    assert describe("atari_pong", EnvOptions()).frameskip == 4
    for before, after in pairwise(steps):
        np.testing.assert_array_equal(after.obs["obs"][:, :3], before.obs["obs"][:, 1:])


def test_the_learner_sees_clipped_rewards_and_the_episode_the_whole_score() -> None:
    kwargs = '{"max_num_frames_per_episode": 480}'
    clipped = _play("atari_ms_pacman", 121, env_kwargs=kwargs)
    full = _play("atari_ms_pacman", 121, env_kwargs=kwargs, atari_clip_rewards=False)
    score = sum(step.result.reward for step in full)
    assert (score > 20).all()  # a pill is 10 points
    assert {float(reward) for step in clipped for reward in step.result.reward} == {0.0, 1.0}
    for steps in (clipped, full):
        episodes = [episode for step in steps for episode in step.episodes]
        assert [episode.episode_return for episode in episodes] == score.tolist()


def test_an_episode_counts_the_frames_of_its_own_decisions() -> None:
    steps = _play("atari_pong", 60, env_kwargs='{"max_num_frames_per_episode": 100}')
    episodes = [episode for step in steps for episode in step.episodes]
    assert {(episode.num_steps, episode.num_frames) for episode in episodes} == {(25, 100)}


def test_a_lost_life_ends_the_episode_for_the_learner_and_the_game_goes_on() -> None:
    lives = _play("atari_breakout", 200, num_envs=4, atari_episodic_life=True, atari_clip_rewards=False)
    games = _play("atari_breakout", 200, num_envs=4, atari_clip_rewards=False)
    assert sum(step.result.terminated.sum() for step in lives) >= 3 * len([e for s in games for e in s.episodes]) > 0
    for life, game in zip(lives, games, strict=True):
        np.testing.assert_array_equal(life.obs["obs"], game.obs["obs"])
        np.testing.assert_array_equal(life.result.valid, game.result.valid)
        np.testing.assert_array_equal(life.result.reward, game.result.reward)
        assert life.episodes == game.episodes
        lost_only = life.result.terminated & ~game.result.terminated
        assert life.result.first[lost_only].all()
        assert not life.result.first[game.result.terminated].any()


def test_actions_are_sticky_by_default_for_v5_ids_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*args: object, **kwargs: object) -> AtariVectorEnv:
        seen.append(kwargs["repeat_action_probability"])
        return AtariVectorEnv(*args, **kwargs)

    monkeypatch.setattr("sf.envs.atari.group.AtariVectorEnv", spy)
    for env_id in ("atari_pong", "PongNoFrameskip-v4", "ALE/Pong-v5"):
        describe(env_id, EnvOptions())
        describe(env_id, EnvOptions(atari_sticky=0.1))
    assert seen == [0.0, 0.1, 0.0, 0.1, 0.25, 0.1]


def test_env_kwargs_and_frameskip_reach_the_emulator() -> None:
    options = EnvOptions(env_frameskip=2, env_kwargs='{"full_action_space": true, "stack_num": 2}')
    spec = describe("atari_pong", options)
    assert spec.action_space.n == 18
    assert spec.obs_space["obs"].shape == (2, 84, 84)
    assert spec.frameskip == 2


def test_a_keyword_that_the_group_decides_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="env_kwargs has 'num_threads', unknown to atari_pong: it may have full_"):
        describe("atari_pong", EnvOptions(env_kwargs='{"num_threads": 8}'))


def test_the_thread_is_pinned_to_the_core_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*args: object, **kwargs: object) -> AtariVectorEnv:
        seen.append((kwargs["num_threads"], kwargs["thread_affinity_offset"]))
        return AtariVectorEnv(*args, **kwargs)

    monkeypatch.setattr("sf.envs.atari.group.AtariVectorEnv", spy)
    for core in (None, 0):
        make_group("atari_pong", 1, EnvOptions(), seed=0, first_env_idx=0, core=core).close()
    assert seen == [(1, -1), (1, 0)]
