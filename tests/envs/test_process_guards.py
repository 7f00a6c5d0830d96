import io
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from moving_env import Moving, MovingAndRaising

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


def test_an_environment_that_is_described_or_drawn_or_raises_leaves_the_standard_streams():
    before = streams()
    envs.describe("silencing", EnvOptions())
    assert streams() == before
    envs.make_rendered_group("silencing", 1, EnvOptions(), seed=0, first_env_idx=0).close()
    assert streams() == before
    with pytest.raises(EnvError, match="no licence"):
        envs.describe("silencing", EnvOptions(env_kwargs='{"raises": true}'))
    assert streams() == before


def test_an_environment_that_is_described_leaves_the_working_directory_also_where_it_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs.register_env("moving", Moving)
    envs.describe("moving", EnvOptions())
    assert Path.cwd() == tmp_path
    envs.register_env("moving", MovingAndRaising)
    with pytest.raises(EnvError, match="it raises there"):
        envs.describe("moving", EnvOptions())
    assert Path.cwd() == tmp_path
