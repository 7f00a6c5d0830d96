"""What a truncated episode counts as."""

import logging

import gymnasium as gym
import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, EnvSpec, StepResult
from sf.rollout.truncations import Truncations

OWN = EnvSpec(gym.spaces.Dict(obs=gym.spaces.Box(0, 1, (1,))), gym.spaces.Discrete(2), has_own_time_limit=True)
AROUND = EnvSpec(OWN.obs_space, OWN.action_space, has_own_time_limit=False)


def result() -> StepResult:
    """Of an actor that goes on, one that is terminated, and one that is truncated."""
    result = StepResult.empty(3)
    result.terminated[1] = True
    result.truncated[2] = True
    return result


@pytest.mark.parametrize(
    ("bootstrap", "spec", "ended"),
    [
        ("auto", OWN, [False, True, True]),
        ("auto", AROUND, [False, True, False]),
        (True, OWN, [False, True, False]),
        (True, AROUND, [False, True, False]),
        (False, OWN, [False, True, True]),
        (False, AROUND, [False, True, True]),
    ],
)
def test_a_truncated_episode_counts_as_the_flag_says_and_by_default_as_its_limit_is_whose(bootstrap, spec, ended):
    given = result()
    assert Truncations("walk", bootstrap, spec).ended(given).tolist() == ended
    assert given.terminated.tolist() == [False, True, False]  # what the environment said stays


@pytest.mark.parametrize(("bootstrap", "is_said"), [("auto", True), (False, False)])
def test_that_a_limit_was_taken_for_an_end_is_said_where_nobody_chose_it(bootstrap, is_said, caplog):
    truncations = Truncations("walk", bootstrap, OWN)
    with caplog.at_level(logging.WARNING, "sf.envs"):
        truncations.ended(StepResult.empty(3))
        assert not caplog.messages  # nothing was truncated
        truncations.ended(result())
    said = [message for message in caplog.messages if "walk truncates episodes itself" in message]
    assert bool(said) == is_said


class TruncatesItself(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, True, {}


class TwoTruncate(TruncatesItself):
    observation_space = gym.spaces.Tuple([TruncatesItself.observation_space] * 2)
    action_space = gym.spaces.Tuple([TruncatesItself.action_space] * 2)

    def reset(self, *, seed=None, options=None):
        return (np.zeros(1, np.float32),) * 2, {}

    def step(self, action):
        return (np.zeros(1, np.float32),) * 2, [0.0, 0.0], False, True, {}


def pendulums(num_envs):
    return gym.vector.SyncVectorEnv([lambda: gym.make("Pendulum-v1")] * num_envs)


LIMITED = ('{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 5}}',)
envs.register_env("truncates_itself", TruncatesItself)
envs.register_env("two_truncate", TwoTruncate)
envs.register_vector_env("pendulums", pendulums)


@pytest.mark.parametrize(
    ("name", "options", "is_own"),
    [
        ("truncates_itself", {}, True),
        ("truncates_itself", {"env_wrappers": LIMITED}, False),
        ("two_truncate", {}, True),
        ("two_truncate", {"env_wrappers": LIMITED}, False),
        ("pendulums", {}, False),
        ("Pendulum-v1", {}, False),
        ("CartPole-v1", {}, False),  # its vectorised version, which has no wrapper
        ("pettingzoo:classic/rps_v2", {}, True),
        ("atari_pong", {}, False),
        ("doom_basic", {}, False),
        ("toy_counting", {}, False),
    ],
)
def test_a_limit_is_the_environments_own_unless_it_lies_around_it(name, options, is_own):
    if name.startswith("pettingzoo"):
        pytest.importorskip("pettingzoo")
    assert envs.describe(name, EnvOptions(**options)).has_own_time_limit == is_own
