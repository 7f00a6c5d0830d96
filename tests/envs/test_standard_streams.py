import io
import sys

import gymnasium as gym
import pytest

from sf import envs
from sf.envs import EnvError, EnvOptions


class Silencing(gym.Env):
    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, raises=False, render_mode=None):
        sys.stdout = sys.stderr = io.StringIO()
        if raises:
            raise OSError("no licence")


envs.register_env("silencing", Silencing)


def streams():
    return sys.stdout, sys.stderr


def test_an_environment_that_is_described_or_drawn_leaves_the_standard_streams():
    before = streams()
    envs.describe("silencing", EnvOptions())
    assert streams() == before
    envs.make_rendered_group("silencing", 1, EnvOptions(), seed=0, first_env_idx=0).close()
    assert streams() == before


def test_one_that_raises_leaves_them_too():
    before = streams()
    with pytest.raises(EnvError, match="no licence"):
        envs.describe("silencing", EnvOptions(env_kwargs='{"raises": true}'))
    assert streams() == before
