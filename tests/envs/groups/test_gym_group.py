from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Memory, play

from sf.envs import ActionSpec, EnvOptions, StepResult, make_group
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


def test_termination_wins_where_an_episode_is_also_truncated() -> None:
    _, steps = play(GymGroup("both", [Both()], 0, 0), 3)
    for step in steps:
        assert step.result.terminated[0]
        assert not step.result.truncated[0]
        assert step.result.valid[0]


def test_the_stats_of_an_episode_come_from_its_last_info() -> None:
    _, steps = play(GymGroup("both", [Both()], 0, 0), 1)
    assert steps[0].episodes[0].stats == {"kills": 3.0}


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


def test_close_closes_every_env_and_may_be_called_again() -> None:
    envs = [Both(), Both()]
    group = GymGroup("both", envs, 0, 0)
    group.close()
    group.close()
    assert all(env.closed for env in envs)


def test_frameskip_repeats_the_action_adds_the_rewards_and_stops_at_the_end() -> None:
    group = GymGroup("counting", [Counting(env_idx=0)], 0, 0, frameskip=3)  # episodes of 1, 4, 7, ... frames
    _, steps = play(group, 4)
    assert group.spec.frameskip == 3
    assert [step.result.reward[0] for step in steps] == [1, 1 + 2 + 3, 4, 0]
    episodes = [episode for step in steps for episode in step.episodes]
    assert [(e.num_steps, e.num_frames, e.episode_return) for e in episodes] == [(1, 1, 1.0), (2, 4, 10.0)]


@pytest.mark.parametrize(
    ("obs", "sentence"),
    [
        (
            np.zeros(3, np.float32),
            r"bad: observation 'obs' came as float32 of shape \(3,\).* float32 of shape \(2,\)",
        ),
        (np.zeros((), np.float32), r"of shape \(\)"),
        (np.zeros(2, np.complex64), "came as complex64"),
    ],
)
def test_an_observation_that_does_not_fit_its_space_is_named(obs: np.ndarray, sentence: str) -> None:
    env = Both()
    env.reset = lambda **kwargs: (obs, {})
    group = GymGroup("bad", [env], 0, 0)
    with pytest.raises(ValueError, match=sentence):
        group.reset(Memory(group).rows)


def test_a_reset_without_an_info_is_named_where_the_observation_is_a_pair() -> None:
    class Pair(Both):
        observation_space = gym.spaces.Tuple([gym.spaces.Box(0.0, 1.0, (2,))] * 2)

        def reset(self, **kwargs):
            return np.zeros(2, np.float32), np.zeros(2, np.float32)

    with pytest.raises(
        ValueError, match=r"reset\(\) returned a tuple whose second part is one object .*: return the obs"
    ):
        play(GymGroup("mine", [Pair()], seed=0, first_env_idx=0), 1)


def test_a_later_observation_of_the_wrong_shape_is_named() -> None:
    env = Both()
    env.step = lambda action: (np.zeros((2, 2), np.float32), 0.0, False, False, {})
    group = GymGroup("bad", [env], 0, 0)
    rows = Memory(group).rows
    group.reset(rows)
    with pytest.raises(ValueError, match=r"bad: observation 'obs' came as float32 of shape \(2, 2\)"):
        group.step(np.zeros((1, 1), np.int32), np.zeros((1, 0), np.float32), rows, StepResult.empty(1))


@pytest.mark.parametrize(("shape", "value"), [((1,), 3.0), ((), np.array([3.0])), ((1, 1), np.float32(3.0))])
def test_a_number_and_an_array_of_one_number_are_the_same_observation(shape: tuple[int, ...], value: Any) -> None:
    env = Both()
    env.observation_space = gym.spaces.Box(0, 5, shape, np.float32)
    env.reset = lambda seed=None, options=None: (value, {})
    rows = Memory(group := GymGroup("one", [env], 0, 0)).rows
    group.reset(rows)
    assert rows["obs"][0].item() == 3.0


@pytest.mark.parametrize("space", [gym.spaces.Text(3), gym.spaces.Dict(a=gym.spaces.Discrete(2))])
def test_an_unsupported_action_space_is_named(space: gym.Space) -> None:
    env = Both()
    env.action_space = space
    with pytest.raises(ValueError, match=r"action space .* is not supported"):
        GymGroup("bad", [env], 0, 0)


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


def test_a_time_limit_of_gymnasium_truncates() -> None:
    group = make_group("MountainCar-v0", 2, EnvOptions(), seed=0, first_env_idx=0)
    _, steps = play(group, 201)
    assert steps[199].result.truncated.all()
    assert not steps[200].result.valid.any()
    np.testing.assert_array_equal(steps[200].obs["obs"][:, 1], 0.0)  # a new car has no speed


class Objectives(Both):
    """What an environment of mo-gymnasium looks like."""

    reward_space = gym.spaces.Box(-1, 1, (2,), np.float32)


class Weighted(gym.RewardWrapper):
    def reward(self, reward: Any) -> float:
        return float(np.sum(reward))


def test_rewards_of_several_objectives_are_refused_before_the_first_step_unless_a_wrapper_may_add_them() -> None:
    for env in (Objectives(), gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(Objectives()), 5)):
        with pytest.raises(ValueError, match=r"^sea: its reward has 2 objectives: give each a weight, .*LinearReward"):
            GymGroup("sea", [env], 0, 0)
    play(GymGroup("sea", [Weighted(Objectives())], 0, 0), 3)


def test_environments_with_other_actions_than_the_first_are_refused() -> None:
    envs = [Counting(env_idx=0), Counting(env_idx=1)]
    envs[1].action_space = gym.spaces.Discrete(97)
    with pytest.raises(UsageError, match=r"one of its environments has the action space Discrete\(97\), another one"):
        GymGroup("mixed", envs, 0, 0)
