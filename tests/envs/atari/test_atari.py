from __future__ import annotations

import inspect
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from group_driver import Step, play

from sf.envs import EnvOptions, as_evaluated, describe, make_group
from sf.envs.atari.group import ENV_IDS, AtariGroup


def _play(env_id: str, num_steps: int, num_envs: int = 2, **options: object) -> list[Step]:
    return play(make_group(env_id, num_envs, EnvOptions(**options), seed=0, first_env_idx=0), num_steps)[1]


def test_every_game_has_its_three_names() -> None:
    assert {"atari_breakout", "ALE/Breakout-v5", "BreakoutNoFrameskip-v4", "atari_ms_pacman"} <= set(ENV_IDS)
    assert sum(env_id.startswith("atari_") for env_id in ENV_IDS) > 100


def test_older_names_of_gymnasium_s_are_found_in_a_process_that_knows_no_game_yet() -> None:
    code = "from sf.envs import EnvOptions, describe; print(describe('Pong-v4', EnvOptions()).obs_space['obs'].shape)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "(210, 160, 3)"


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


@pytest.mark.parametrize("env_id", ["atari_breakout", "ALE/Breakout-v5"])
def test_evaluations_play_whole_games(env_id: str) -> None:
    trained = EnvOptions(atari_episodic_life=True, atari_clip_rewards=False)
    assert as_evaluated(env_id, trained) == EnvOptions(atari_clip_rewards=False)
    assert as_evaluated("CartPole-v1", trained) == trained


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


class ScriptedGame:
    """Stands in for the emulator of a game. Of each step: points, lives left, whether the game or its time is over."""

    num_envs = 1
    single_observation_space = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    single_action_space = gym.spaces.Discrete(2)
    ale = SimpleNamespace(get_action_set=list)

    def __init__(self, *steps: tuple[float, int, bool, bool]) -> None:
        self._steps = iter(steps)
        self._frame = 7  # of no action
        self._frames = np.zeros((1, 4, 84, 84), np.uint8)

    def _info(self, lives: int) -> dict[str, np.ndarray]:
        return {"lives": np.array([lives]), "episode_frame_number": np.array([self._frame])}

    def reset(self, *, seed: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return self._frames, self._info(3)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        points, lives, over, time_over = next(self._steps)
        self._frame += 4
        return self._frames, np.array([points]), np.array([over]), np.array([time_over]), self._info(lives)

    def close(self) -> None:
        pass


def _play_script(*steps: tuple[float, int, bool, bool], **options: object) -> list[Step]:
    return play(AtariGroup(ScriptedGame(*steps), 4, EnvOptions(**options), [0]), len(steps))[1]


def test_each_game_has_a_score_of_its_own_and_the_step_that_resets_counts_for_none() -> None:
    first, second = [(2, 3, False, False), (5, 0, True, False)], [(1, 3, False, False), (3, 0, True, False)]
    steps = _play_script(*first, (5, 3, False, False), *second)  # ALE leaves the points of the last step there
    episodes = [episode for step in steps for episode in step.episodes]
    assert [(e.episode_return, e.num_steps, e.num_frames) for e in episodes] == [(7, 2, 8), (4, 2, 8)]
    assert [step.result.reward[0] for step in steps] == [1, 1, 0, 1, 1]
    assert [step.result.valid[0] for step in steps] == [True, True, False, True, True]


def test_a_life_that_is_lost_as_the_time_is_over_terminates() -> None:
    lost, kept = ((0, 2, False, True), (0, 3, False, True))
    ends = [(step.result.terminated[0], step.result.truncated[0]) for step in _play_script(lost)]
    assert ends == [(False, True)]
    for last, expected in ((lost, (True, False)), (kept, (False, True))):
        (step,) = _play_script(last, atari_episodic_life=True)
        assert (step.result.terminated[0], step.result.truncated[0]) == expected
        assert not step.result.first[0]
        assert len(step.episodes) == 1


@pytest.mark.long
def test_a_game_begins_with_up_to_30_frames_of_no_action_and_with_fire() -> None:
    group = make_group("atari_breakout", 32, EnvOptions(), seed=0, first_env_idx=0)
    play(group, 0)
    num_frames = set(group._first_frame.tolist())
    assert min(num_frames) >= 1
    assert max(num_frames) <= 30
    assert len(num_frames) > 10


@pytest.mark.parametrize(
    ("name", "usual", "other"),
    [
        ("maxpool", "true", "false"),
        ("use_fire_reset", "true", "false"),
        ("noop_max", "30", "0"),
        ("stack_num", "4", "3"),
    ],
)
def test_the_preprocessing_is_the_usual_one(name: str, usual: str, other: str) -> None:
    default, named, changed = (
        np.array([step.obs["obs"][:, -1] for step in _play("atari_breakout", 20, **options)])
        for options in ({}, *({"env_kwargs": f'{{"{name}": {value}}}'} for value in (usual, other)))
    )
    assert (default == named).all()
    assert name == "stack_num" or (default != changed).any()


def test_a_game_takes_half_an_hour_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*args: object, **kwargs: object) -> AtariVectorEnv:
        bound = inspect.signature(AtariVectorEnv).bind(*args, **kwargs)
        bound.apply_defaults()
        seen.append(bound.arguments["max_num_frames_per_episode"])
        return AtariVectorEnv(*args, **kwargs)

    monkeypatch.setattr("sf.envs.atari.group.AtariVectorEnv", spy)
    describe("atari_pong", EnvOptions())
    assert seen == [30 * 60 * 60]


def test_a_game_is_seeded_by_its_number_in_the_run() -> None:
    of_four, of_one, another = (
        play(make_group("atari_breakout", num, EnvOptions(), seed=0, first_env_idx=first), 5)[1][-1].obs["obs"][-1]
        for num, first in ((4, 0), (1, 3), (1, 0))
    )
    assert (of_four != another).any()
    assert (
        of_one == play(make_group("atari_breakout", 1, EnvOptions(), seed=0, first_env_idx=3), 5)[1][-1].obs["obs"]
    ).all()


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


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ('{"stack_num": 0}', "env_kwargs has the stack_num 0: a whole number, at least 1"),
        ('{"img_height": 0}', "env_kwargs has the img_height 0: a whole number, at least 1"),
        ('{"noop_max": -1}', "env_kwargs has the noop_max -1: a whole number, at least 0"),
        ('{"stack_num": "x"}', "env_kwargs has the stack_num 'x': a whole number"),
        ('{"maxpool": 3}', "env_kwargs has the maxpool 3: true or false"),
    ],
)
def test_a_wrong_value_is_refused_before_the_emulator_waits_for_ever(kwargs: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        describe("atari_pong", EnvOptions(env_kwargs=kwargs))


def test_the_thread_is_pinned_to_the_core_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*args: object, **kwargs: object) -> AtariVectorEnv:
        seen.append((kwargs["num_threads"], kwargs["thread_affinity_offset"]))
        return AtariVectorEnv(*args, **kwargs)

    monkeypatch.setattr("sf.envs.atari.group.AtariVectorEnv", spy)
    for core in (None, 0):
        make_group("atari_pong", 1, EnvOptions(), seed=0, first_env_idx=0, core=core).close()
    assert seen == [(1, -1), (1, 0)]
