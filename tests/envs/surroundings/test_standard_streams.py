import io
import subprocess
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


@pytest.mark.parametrize(
    "replace",
    [
        "io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
        "io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')",
        "os.fdopen(sys.stdout.fileno(), 'w', 1)",
    ],
)
def test_one_that_shares_its_descriptor_with_ours_does_not_close_it(replace):
    code = f"""
import gc, io, os, sys
from sf.envs.surroundings import standard_streams
with standard_streams.kept():
    sys.stdout = {replace}
gc.collect()
print("after", flush=True)
os.write(1, b"at its descriptor")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("after\nat its descriptor", "")


def test_one_that_raises_leaves_them_too():
    before = streams()
    with pytest.raises(EnvError, match="no licence"):
        envs.describe("silencing", EnvOptions(env_kwargs='{"raises": true}'))
    assert streams() == before
