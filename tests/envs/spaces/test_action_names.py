"""The names of actions, wherever an environment has them."""

from enum import IntEnum

import gymnasium as gym
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from sf.envs.doom.controls import one_of, turn_by
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


def test_options_of_doom_are_called_as_their_buttons_and_by_how_far_one_turns():
    assert one_of("MOVE_LEFT", "ATTACK").names == ("NOOP", "MOVE_LEFT", "ATTACK")
    assert turn_by(5, max_degrees=3.0).names == (
        "TURN_LEFT 3",
        "TURN_LEFT 1.5",
        "NOOP",
        "TURN_RIGHT 1.5",
        "TURN_RIGHT 3",
    )
    look = turn_by(3, max_degrees=10.0, button="LOOK_UP_DOWN_DELTA")
    assert look.names == ("LOOK_DOWN 10", "NOOP", "LOOK_UP 10")
