"""A run whose environment has wrappers, from its flags to its evaluation."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import yaml
from runs import FAST

from sf import make_config

SOURCE = """
import gymnasium as gym

class Doubled(gym.RewardWrapper):
    def __init__(self, env, by=1.0):
        super().__init__(env)
        self._by = by

    def reward(self, reward):
        return self._by * reward
"""
STACKED = "gymnasium.wrappers:FrameStackObservation"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("own_rewards.py").write_text(SOURCE)
    yield
    sys.modules.pop("own_rewards", None)


def run(module, *words):
    """A command with these arguments; its status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["a command", *words])
        try:
            importlib.import_module(module).main()
        except SystemExit as end:
            return end.code or 0
    return 0


def test_a_run_keeps_its_wrappers_when_it_is_resumed_evaluated_and_drawn(capsys):
    wrappers = [json.dumps({STACKED: {"stack_size": 3}}), '{"own_rewards:Doubled": {"by": 100.0}}']
    args = ["--env", "toy_memory", "--train_dir", ".", "--experiment", "wrapped", *FAST, "--train_for_env_steps", "640"]
    for more in (["--env_wrappers", *wrappers], ["--train_for_env_steps", "1280"]):
        assert run("sf.__main__", *args, *more) == 0
    assert yaml.safe_load(Path("wrapped/config.yaml").read_text())["env_wrappers"] == wrappers
    config = make_config(experiment="wrapped", train_dir=".")
    assert [each.name for each in config.environment.wrappers] == [STACKED, "own_rewards:Doubled"]
    capsys.readouterr()

    assert (
        run("sf.tools.commands.evaluate", "wrapped", "--num_workers", "1", "--episodes", "20", "--json", "score.json")
        == 0
    )
    assert "100.00" in capsys.readouterr().out  # the best return, which is 1 without wrappers
    assert run("sf.tools.commands.enjoy", "wrapped", "--video", "out.gif", "--episodes", "1") == 0
    assert Path("out.gif").stat().st_size > 0
