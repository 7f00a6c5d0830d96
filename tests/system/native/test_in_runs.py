"""--compile, from the flag to the networks of a run."""

import os
import sys

import gymnasium as gym
import pytest
import torch
import warm

from sf.config import Config, ModelConfig
from sf.envs import ActionSpec
from sf.envs.errors import UsageError
from sf.model.building import build_model
from sf.run.planning import make_plan
from sf.system.native import kernels

REASON = "this machine has no C++ compiler"


def plan(compile):
    return make_plan(Config().replace(env="toy_identity", device="cpu", compile=compile))


@pytest.fixture
def without_compiler(monkeypatch):
    monkeypatch.setattr(kernels, "why_not", lambda: REASON)


@pytest.mark.usefixtures("without_compiler")
def test_what_is_asked_for_and_cannot_be_is_an_error_and_else_a_remark():
    with pytest.raises(UsageError, match=r"^compile is true, but this machine has no C\+\+ compiler: "):
        plan(True)
    assert plan("auto").why_no_loops == REASON
    assert plan(False).why_no_loops is None


@pytest.mark.parametrize("compile", ["auto", True, False])
@pytest.mark.parametrize("core", ["gru", "lstm", "mingru"])
def test_a_network_that_is_told_so_does_without_wherever_it_acts(compile, core, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "pay", lambda *_, **__: asked.append(1))  # and none is used
    space, action = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (3,))), ActionSpec.of(gym.spaces.Discrete(2))
    network = build_model(ModelConfig(core=core, rnn_size=4, compile=compile), space, action)
    state, first = torch.zeros(2, network.state_size), torch.zeros(5, 2, dtype=torch.bool)
    with torch.no_grad():
        network.step({"obs": torch.zeros(2, 3)}, state, first[0])
    network.unroll({"obs": torch.zeros(5, 2, 3)}, state, first)
    assert bool(asked) == (compile is not False)


@pytest.mark.long
def test_a_run_without_a_compiler_says_so_once_and_trains(tmp_path):
    flags = ["--env", "toy_identity", "--device", "cpu", "--num_workers", "1", "--num_envs_per_worker", "2"]
    flags += ["--rollout", "8", "--batch_size", "16", "--learner_threads", "1", "--train_for_env_steps", "64"]
    environment = {**os.environ, "CXX": str(tmp_path / "c++"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "sf", *flags, "--train_dir", str(tmp_path), "--core", "gru", "--rnn_size", "4"]
    done = warm.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    said = [line for line in done.stdout.splitlines() if "compiled loops" in line]
    assert len(said) == 1
    assert "--compile false" in said[0]
