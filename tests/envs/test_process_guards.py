import io
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from moving_env import Moving, MovingAndRaising

from sf import envs
from sf.envs import EnvError, EnvOptions
from sf.envs.process_guards import keep_working_directory


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


def test_streams_that_share_their_descriptor_with_ours_do_not_close_it():
    code = """
import gc, io, os, sys
from sf.envs.process_guards import keep_standard_streams
for replacing in (
    lambda: os.fdopen(sys.stdout.fileno(), 'w', 1),
    lambda: io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8'),
    lambda: io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8'),
):
    with keep_standard_streams():
        sys.stdout = replacing()
    gc.collect()
    print("after", flush=True)
    os.write(1, b"at its descriptor\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("after\nat its descriptor\n" * 3, "")


def test_a_directory_that_was_moved_or_is_gone_is_kept(tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with keep_working_directory():
        monkeypatch.chdir(tmp_path)
        here.rename("there")
    assert Path.cwd() == tmp_path / "there"
    Path.cwd().rmdir()
    envs.make_group("keyed_env:Keyed", 1, EnvOptions(), seed=0, first_env_idx=0).close()
    envs.describe("keyed_env:Keyed", EnvOptions())


def test_an_environment_that_is_described_leaves_the_working_directory_also_where_it_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs.register_env("moving", Moving)
    envs.describe("moving", EnvOptions())
    assert Path.cwd() == tmp_path
    envs.register_env("moving", MovingAndRaising)
    with pytest.raises(EnvError, match="it raises there"):
        envs.describe("moving", EnvOptions())
    assert Path.cwd() == tmp_path
