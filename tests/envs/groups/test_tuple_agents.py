from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions


class Lift(gym.Env):
    """Two agents: the reward of each is its action, and the second one ends a step before the first."""

    observation_space = gym.spaces.Tuple([gym.spaces.Box(0, 9, (2,), np.float32)] * 2)
    action_space = gym.spaces.Tuple([gym.spaces.Discrete(3, start=1)] * 2)
    ends_together = True

    def __init__(self) -> None:
        self.actions: list[tuple[int, ...]] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.count = 0
        return self._obs(), {}

    def step(self, action: tuple[int, ...]) -> Any:
        self.actions.append(action)
        self.count += 1
        ended: Any = self.count == 3 if self.ends_together else [self.count == 3, self.count == 2]
        return self._obs(), list(map(float, action)), ended, False, {}

    def _obs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0, self.count], np.float32), np.array([1, self.count], np.float32)


class LiftPaidInArrays(Lift):
    """After its first step, which shows that it has two agents."""

    def step(self, action: tuple[int, ...]) -> Any:
        obs, rewards, *rest = super().step(action)
        return obs, list(map(self.paid, rewards)) if len(self.actions) > 1 else rewards, *rest

    def paid(self, reward: float) -> Any:
        return np.array([[reward]])


class LiftApart(Lift):
    ends_together = False


class LiftAlone(Lift):
    """One agent with two hands: the reward is a number."""

    def step(self, action: tuple[int, ...]) -> Any:
        obs, rewards, *rest = super().step(action)
        return obs, sum(rewards), *rest


def _group(kind: type[Lift], **options: Any) -> envs.EnvGroup:
    envs.register_env("lift", kind)
    return envs.make_group("lift", 1, EnvOptions(**options), seed=0, first_env_idx=0)


def test_tuples_and_a_list_of_rewards_are_several_agents() -> None:
    group = _group(Lift)
    assert group.spec.num_agents == group.num_actors == 2
    assert group.spec.action_space == gym.spaces.Discrete(3, start=1)
    first_obs, steps = play(group, 6)
    assert first_obs["obs"].tolist() == [[0, 0], [1, 0]]
    for step in steps:
        assert step.result.reward.tolist() == [choice + 1 for choice in step.discrete[:, 0]]
    assert [step.result.terminated.tolist() for step in steps[:3]] == [[False, False], [False, False], [True, True]]
    assert sum(len(step.episodes) for step in steps) == 4
    alone = _group(LiftAlone)  # one number as the reward
    assert alone.spec.num_agents == alone.num_actors == 1
    assert set(alone.spec.obs_space) == {"0", "1"}
    play(alone, 4)


def test_an_agent_that_ends_first_leaves_and_its_first_action_goes_on() -> None:
    env = LiftApart()
    envs.register_env("lift", lambda: env)
    group = envs.make_group("lift", 1, EnvOptions(), seed=0, first_env_idx=0)
    env.actions.clear()
    _, steps = play(group, 3)
    assert [step.result.terminated.tolist() for step in steps] == [[False, False], [False, True], [True, False]]
    assert steps[2].result.valid.tolist() == [True, False]
    assert env.actions[2][1] == 1


@pytest.mark.parametrize("render", [False, True])
@pytest.mark.parametrize("kind", [Lift, LiftPaidInArrays])
def test_each_agent_is_paid_its_own_number_whatever_it_is_trained_on(kind: Any, render: bool) -> None:
    envs.register_env("lift", kind)
    make = envs.make_rendered_group if render else envs.make_group
    _, steps = play(make("lift", 1, EnvOptions(share_reward=True), seed=0, first_env_idx=0), 3)
    for step in steps:
        assert step.result.reward.tolist() == (step.discrete[:, 0] + 1).tolist()
