from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf.envs import ActionSpec
from sf.envs.errors import UsageError
from sf.envs.groups.gym import GymGroup
from sf.envs.toys.single import Counting


class Both(gym.Env):
    """Ends by termination and truncation at once, and says something about the episode."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.resets: list[int | None] = []
        self.closed = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self.resets.append(seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: int):
        return np.ones(2, np.float32), 1.0, True, True, {"episode_stats": {"kills": 3}}

    def close(self) -> None:
        self.closed = True


def test_every_observation_is_the_one_that_follows_the_action() -> None:
    group = GymGroup("counting", [Counting(env_idx=i) for i in range(10, 14)], 0, 10)
    first_obs, steps = play(group, 200)
    before = first_obs["obs"]
    for step in steps:
        for n in range(4):
            env_idx, episode, count, action = step.obs["obs"][n].astype(int)
            _, old_episode, old_count, _ = before[n].astype(int)
            assert env_idx == 10 + n
            if step.result.first[n]:
                assert (episode, count, action) == (old_episode + 1, 0, -1)
            else:
                assert (episode, count, action) == (old_episode, old_count + 1, step.discrete[n, 0])
            ends_here = old_count + 1 == Counting.num_steps(env_idx, old_episode)
            if step.result.valid[n]:
                assert step.result.reward[n] == old_count + 1
                assert step.result.terminated[n] == (ends_here and old_episode % 2 == 0)
                assert step.result.truncated[n] == (ends_here and old_episode % 2 == 1)
        before = step.obs["obs"]


def test_termination_wins_where_an_episode_is_also_truncated_and_stats_come_from_the_last_info() -> None:
    env = Both()
    _, steps = play(GymGroup("both", [env], 0, 0), 3)
    for step in steps:
        assert (step.result.terminated[0], step.result.truncated[0], step.result.valid[0]) == (True, False, True)
        assert step.episodes[0].stats == {"kills": 3.0}
    assert env.closed


def test_every_env_of_a_run_gets_its_own_seed_whatever_its_group() -> None:
    envs = [Both() for _ in range(6)]
    play(GymGroup("both", envs[:4], 7, 0), 1)
    play(GymGroup("both", envs[4:], 7, 4), 1)
    seeds = [env.resets[0] for env in envs]
    assert len(set(seeds)) == 6
    again = [Both() for _ in range(3)]
    play(GymGroup("both", again, 7, 3), 1)
    assert [env.resets[0] for env in again] == seeds[3:]
    assert envs[0].resets[1] is None  # the generator goes on with the second episode


def test_frameskip_repeats_the_action_adds_the_rewards_and_stops_at_the_end() -> None:
    group = GymGroup("counting", [Counting(env_idx=0)], 0, 0, frameskip=3)  # episodes of 1, 4, 7, ... frames
    _, steps = play(group, 4)
    assert group.spec.frameskip == 3
    assert [step.result.reward[0] for step in steps] == [1, 1 + 2 + 3, 4, 0]
    episodes = [episode for step in steps for episode in step.episodes]
    assert [(e.num_steps, e.num_frames, e.episode_return) for e in episodes] == [(1, 1, 1.0), (2, 4, 10.0)]


@pytest.mark.parametrize(
    "space",
    [gym.spaces.MultiBinary(3), gym.spaces.Tuple((gym.spaces.MultiBinary((2, 2)), gym.spaces.Discrete(2)))],
)
def test_an_environment_of_multi_binary_actions_gets_them_as_its_space_has_them(space: gym.Space) -> None:
    env, taken = Both(), []
    env.action_space = space
    step = env.step
    env.step = lambda action: (taken.append(action), step(action))[1]
    group = GymGroup("buttons", [env], 0, 0)
    assert set(ActionSpec.of(group.spec.action_space).discrete_sizes) == {2}
    play(group, 5)
    assert len(taken) == 5
    assert all(space.contains(action) for action in taken)


class Objectives(Both):
    """What an environment of mo-gymnasium looks like."""

    reward_space = gym.spaces.Box(-1, 1, (2,), np.float32)


class Weighted(gym.RewardWrapper):
    def reward(self, reward: Any) -> float:
        return float(np.sum(reward))


PAIR = gym.spaces.Tuple([gym.spaces.Box(0.0, 1.0, (2,))] * 2)
TWO = gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(Objectives()), 5)


def _env(**members: Any) -> Both:
    env = Both()
    vars(env).update(members)
    return env


@pytest.mark.parametrize(
    ("envs", "named"),
    [
        ([_env(reset=lambda **kwargs: (np.zeros(3, np.float32), {}))], r"'obs' came as float32 of shape \(3,\)"),
        ([_env(reset=lambda **kwargs: (np.zeros(2, np.complex64), {}))], "'obs' came as complex64"),
        ([_env(step=lambda action: (np.zeros((2, 2), np.float32), 0.0, False, False, {}))], r"of shape \(2, 2\)"),
        ([_env(observation_space=PAIR, reset=lambda **kwargs: (np.zeros(2), np.zeros(2)))], r"reset\(\)"),
        ([_env(action_space=gym.spaces.Text(3))], "action space"),
        ([_env(action_space=gym.spaces.Dict(a=gym.spaces.Text(2)))], "action space"),
        ([_env(), _env(action_space=gym.spaces.Discrete(97))], r"Discrete\(97\)"),
        ([Objectives()], "2 objectives"),
        ([TWO], "2 objectives"),
    ],
)
def test_what_cannot_be_trained_on_is_named(envs: list[gym.Env], named: str) -> None:
    with pytest.raises(UsageError, match=f"^bad: .*{named}"):
        play(GymGroup("bad", envs, 0, 0), 1)


@pytest.mark.parametrize(("shape", "value"), [((1,), 3.0), ((), np.array([3.0])), ((1, 1), np.float32(3.0))])
def test_a_number_and_an_array_of_one_number_are_the_same_observation(shape: tuple[int, ...], value: Any) -> None:
    env = _env(observation_space=gym.spaces.Box(0, 5, shape, np.float32), reset=lambda **kwargs: (value, {}))
    first, _ = play(GymGroup("one", [env], 0, 0), 0)
    assert first["obs"].item() == 3.0


def test_a_wrapper_may_add_the_rewards_of_several_objectives() -> None:
    play(GymGroup("sea", [Weighted(Objectives())], 0, 0), 3)
