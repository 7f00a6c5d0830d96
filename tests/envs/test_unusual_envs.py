"""What environments of others have that is unusual: each is stepped as it is meant, or one sentence says what to do."""

import json

import gymnasium as gym
import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, StepResult
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.vector import VectorGroup

HERE = __name__


class Base(gym.Env):
    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, {}


class Counted(Base):
    """The third of them cannot be made."""

    made, closed = 0, 0

    def __init__(self, render_mode=None):
        Counted.made += 1
        if Counted.made == 3:
            raise RuntimeError("no licence is left")

    def close(self):
        Counted.closed += 1


def make(name, num_envs=1, **options):
    return envs.make_group(name, num_envs, EnvOptions(**options), seed=0, first_env_idx=0)


@pytest.mark.parametrize(("limit", "kind"), [(7, VectorGroup), (-1, GymGroup), (None, GymGroup)])
def test_a_limit_that_gymnasiums_vector_environments_do_not_know(limit, kind):
    group = make("CartPole-v1", 2, env_kwargs=json.dumps({"max_episode_steps": limit}))
    rows, result = {"obs": list(np.zeros((2, 4), np.float32))}, StepResult.empty(2)
    group.reset(rows)
    ended = [e for _ in range(30) for e in group.step(np.ones((2, 1), np.int32), np.zeros((2, 0)), rows, result)]
    group.close()
    assert isinstance(group, kind)
    assert {episode.num_steps for episode in ended} == {7} if limit == 7 else min(e.num_steps for e in ended) > 7


def test_a_vectorised_version_of_another_package_may_be_another_task():
    group = make("ale_py:ALE/Pong-v5", env_kwargs='{"obs_type": "ram"}')
    assert isinstance(group, GymGroup)
    assert group.spec.obs_space["obs"].shape == (128,)
    group.close()


def test_environments_that_were_made_before_one_that_fails_are_closed():
    Counted.made = Counted.closed = 0
    with pytest.raises(envs.EnvError, match="no licence is left"):
        make(f"{HERE}:Counted", 4)
    assert (Counted.made, Counted.closed) == (3, 2)
    Counted.made = Counted.closed = 0
    with pytest.raises(envs.EnvError, match="no licence is left"):
        envs.make_rendered_group(f"{HERE}:Counted", 4, EnvOptions(), seed=0, first_env_idx=0)
    assert Counted.closed == Counted.made - 1
