"""The names of actions, wherever an environment has them."""

from enum import IntEnum

import gymnasium as gym
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from sf.envs.spaces.action_names import action_names


class Env(gym.Env):
    observation_space = Box(0.0, 1.0, (2,))
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def of(space=Env.action_space, **members):
    return type("Of", (Env,), {"action_space": space, **members})()


@pytest.mark.parametrize(
    ("env", "names"),
    [
        (Env(), ()),
        (of(action_names=("run", "hide")), (("run", "hide"),)),
        (of(MultiDiscrete([2, 3]), action_names=[["stay", "go"], "abc"]), (("stay", "go"), ("a", "b", "c"))),
        (of(get_action_meanings=lambda self: ["NOOP", "FIRE"]), (("NOOP", "FIRE"),)),  # as ALE
        (of(actions=IntEnum("Actions", ["left", "right"])), (("left", "right"),)),  # as MiniGrid
        (of(action_names=("one", "two", "three"), actions=7), ()),  # of another space
        (of(action_names=property(lambda self: 1 / 0)), ()),
        (gym.wrappers.TimeLimit(of(action_names=("run", "hide")), 5), (("run", "hide"),)),
    ],
)
def test_the_names_of_an_environment(env, names):
    assert action_names(env, env.action_space) == names
