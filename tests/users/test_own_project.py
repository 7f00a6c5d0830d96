"""A project with folders `envs/` and `configs/` of its own, by an installed trainer: it trains, resumes, evaluates and
sweeps.

Both kinds of installation are made from a copy of the source, into virtual environments that see the packages of this
one, without network.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from source import copy_source

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ENV = """
import gymnasium as gym
import numpy as np


class {name}(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps = 0
        return np.zeros(2, np.float32), {{}}

    def step(self, action):
        self.num_steps += 1
        return np.zeros(2, np.float32), float(action), self.num_steps == 5, False, {{}}
"""
PRESET = """
num_workers: 1
num_envs_per_worker: 2
batch_size: 32
rollout: 8
device: cpu
encoder_mlp_layers: [8]
learner_threads: 1
gamma: 0.875
"""
SCRIPT = """
from sf import main
from envs.my_env import MyEnv  # the project's own

if __name__ == "__main__":
    main(env="beside:Beside")
"""
SWEEP = """
flags: {env: "envs.my_env:MyEnv", config: configs/mine.yaml, train_for_env_steps: 64}
grid: {learning_rate: [0.001]}
"""


@pytest.fixture(scope="module", params=["editable", "wheel"])
def programs(request, tmp_path_factory):
    """The folder with the commands of an installation."""
    source, folder = copy_source(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp(request.param)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)
    site_packages = next(folder.glob("lib/python*/site-packages"))
    (site_packages / "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    how = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    what = ["--editable", str(source)] if request.param == "editable" else [str(source)]
    subprocess.run([*pip, "install", *how, *what], check=True, capture_output=True, timeout=300)
    return folder / "bin"


@pytest.fixture
def project(programs, tmp_path):
    """A function that runs a command in the project, and returns what it said. Beside the wheel, its folders are
    packages."""
    files = {"envs/my_env.py": ENV.format(name="MyEnv"), "beside.py": ENV.format(name="Beside")}
    files |= {"configs/mine.yaml": PRESET, "train.py": SCRIPT, "small.yaml": SWEEP}
    if programs.parent.name.startswith("wheel"):
        files |= {"envs/__init__.py": "", "configs/__init__.py": ""}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words):
        done = subprocess.run(
            list(map(str, words)), cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_project_with_envs_and_configs_of_its_own_trains_resumes_evaluates_and_sweeps(programs, project):
    where = project(programs / "python", "-c", "import sf; print(sf.__file__)").strip()
    assert not Path(where).is_relative_to(Path(__file__).parent.parent.parent)  # what was installed, not what is tested

    def train(program, run):
        said = project(*program, "--config", "configs/mine.yaml", "--train_for_env_steps", "64")
        assert "starts from the preset configs/mine.yaml" in said
        assert "gamma: 0.875" in project("cat", f"train_dir/{run}/config.yaml")

    train([programs / "python", "train.py"], "beside_Beside")  # of the environment that lies beside it
    own = [programs / "sf-train", "--env", "envs.my_env:MyEnv"]
    train(own, "envs.my_env_MyEnv")
    if programs.parent.name.startswith("editable"):
        return  # both kinds find the folders, and what else is done with them is the same
    assert "95 %" in project(programs / "sf-eval", "train_dir/beside_Beside", "--episodes", "2", "--num_workers", "1")
    project(*own, "--train_for_env_steps", "128")
    assert '"env_steps": 128' in project("cat", "train_dir/envs.my_env_MyEnv/summary.json")
    assert project(programs / "sf-sweep", "small.yaml").count("done learning_rate=") == 1
