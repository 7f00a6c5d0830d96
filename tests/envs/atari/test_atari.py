from __future__ import annotations

import inspect
import json
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
    clipped = _play("atari_ms_pacman", 121, 1, env_kwargs=kwargs)
    full = _play("atari_ms_pacman", 121, 1, env_kwargs=kwargs, atari_clip_rewards=False)
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


def test_a_lost_life_ends_the_episode_for_the_learner_and_the_game_goes_on() -> None:
    lives = _play("atari_breakout", 170, 1, atari_episodic_life=True, atari_clip_rewards=False)
    games = _play("atari_breakout", 170, 1, atari_clip_rewards=False)
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


def test_a_game_is_seeded_by_its_number_in_the_run() -> None:
    one, again, another = (
        play(make_group("atari_breakout", 1, EnvOptions(), seed=0, first_env_idx=first), 5)[1][-1].obs["obs"]
        for first in (3, 3, 0)
    )
    assert (one == again).all()
    assert (one != another).any()


def test_the_preprocessing_is_the_usual_one() -> None:
    def played(**kwargs: object) -> np.ndarray:
        steps = _play("atari_breakout", 15, 1, env_kwargs=json.dumps(kwargs))
        return np.array([step.obs["obs"][:, -1] for step in steps])

    default = played()
    assert (default == played(maxpool=True, use_fire_reset=True, noop_max=30)).all()
    for name, other in (("maxpool", False), ("use_fire_reset", False), ("noop_max", 0)):
        assert (default != played(**{name: other})).any(), name


def test_what_reaches_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*args: object, **kwargs: object) -> AtariVectorEnv:
        bound = inspect.signature(AtariVectorEnv).bind(*args, **kwargs)
        bound.apply_defaults()
        seen.append(bound.arguments)
        return AtariVectorEnv(*args, **kwargs)

    monkeypatch.setattr("sf.envs.atari.group.AtariVectorEnv", spy)
    for core in (None, 0):
        make_group("atari_pong", 1, EnvOptions(), seed=0, first_env_idx=0, core=core).close()
    assert [(each["num_threads"], each["thread_affinity_offset"]) for each in seen] == [(1, -1), (1, 0)]
    assert seen[0]["max_num_frames_per_episode"] == 30 * 60 * 60
    seen.clear()
    for env_id in ("PongNoFrameskip-v4", "ALE/Pong-v5"):
        describe(env_id, EnvOptions())
        describe(env_id, EnvOptions(atari_sticky=0.1))
    assert [each["repeat_action_probability"] for each in seen] == [0.0, 0.1, 0.25, 0.1]
    kwargs = {"full_action_space": True, "stack_num": 2, "max_num_frames_per_episode": 50}
    options = EnvOptions(env_frameskip=2, env_kwargs=json.dumps(kwargs))
    spec = describe("atari_pong", options)
    assert (spec.action_space.n, spec.obs_space["obs"].shape, spec.frameskip) == (18, (2, 84, 84), 2)
    _, steps = play(make_group("atari_pong", 1, options, seed=0, first_env_idx=0), 60)
    episodes = [episode for step in steps for episode in step.episodes]
    assert {(episode.num_steps, episode.num_frames) for episode in episodes} == {(25, 50)}
    assert {"atari_breakout", "ALE/Breakout-v5", "BreakoutNoFrameskip-v4", "atari_ms_pacman"} <= set(ENV_IDS)


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_threads", 8), ("stack_num", 0), ("img_height", 0), ("noop_max", -1), ("stack_num", "x"), ("maxpool", 3)],
)
def test_a_wrong_keyword_is_named_before_the_emulator_waits_for_ever(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        describe("atari_pong", EnvOptions(env_kwargs=json.dumps({name: value})))
