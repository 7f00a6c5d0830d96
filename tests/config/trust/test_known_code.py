"""The code that a user has trained with needs no further word."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from runs import train

from sf import load_policy, make_config
from sf.config.trust import NamedCode, known_code, known_code_path, remember_code
from sf.evaluation.play.contestants import find_policies
from sf.storage import checkpoint
from sf.system.messages import said_to

OWN = NamedCode("env", "own:Env", "{}", "/home/me/own.py")
MODULE = """
from torch import nn
from sf.envs.toys.single import Identity

class Env(Identity):
    def __init__(self, length=32):
        super().__init__()

class Net(nn.Module):
    def __init__(self, space, config):
        super().__init__()
        self.out_size = 4

    def forward(self, obs):
        return obs
"""


@pytest.fixture(autouse=True)
def _of_a_new_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def remember(*code):
    said = []
    with said_to(said.append):
        remember_code(code)
    return said


def test_a_run_of_ones_own_is_evaluated_exported_and_resumed_without_a_further_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    Path("own.py").write_text(MODULE)
    flags = ["--encoder", "own:Net", "--experiment", "mine", "--train_for_env_steps", "640"]
    train(tmp_path, *flags, env="own:Env")
    try:
        assert load_policy("mine").env_id == "own:Env"
        assert make_config(experiment="mine", train_dir=".").model.encoder == "own:Net"
        shutil.move("mine", "elsewhere")
        _, saved = checkpoint.load_latest(Path("elsewhere/checkpoints"))
        Path("alone.safetensors").write_bytes(checkpoint.encode(saved))
        assert len(find_policies(Path("elsewhere"), (Path("alone.safetensors"),), "latest", None)) == 2

        other_arguments = {**saved.state["config"], "env_kwargs": '{"length": 5}'}
        other = checkpoint.Checkpoint(saved.tensors, {**saved.state, "config": other_arguments})
        Path("other.safetensors").write_bytes(checkpoint.encode(other))
        with pytest.raises(ValueError, match="names env 'own:Env': that is code"):
            load_policy("other.safetensors")

        # A module of the same name that is another one, as in an archive of somebody who knows the user's names.
        Path("archive").mkdir()
        Path("archive/own.py").write_text("raise AssertionError('it was run')")
        sys.modules.pop("own", None)
        monkeypatch.chdir("archive")
        monkeypatch.setattr("sys.path", [path for path in sys.path if path != str(tmp_path)])
        with pytest.raises(ValueError, match="env 'own:Env' and encoder 'own:Net'"):
            load_policy("../alone.safetensors")
    finally:
        sys.modules.pop("own", None)


def test_what_is_remembered_is_known_and_written_down_once():
    assert known_code() == set()
    for _ in range(2):
        assert remember(OWN, OWN._replace(flag="encoder", env_kwargs=None)) == []
    assert known_code() == {OWN, OWN._replace(flag="encoder", env_kwargs=None)}
    lines = known_code_path().read_text().splitlines()
    assert json.loads(lines[0]) == OWN._asdict()
    assert len(lines) == 2
    assert known_code_path().stat().st_mode & 0o777 == 0o600
    assert known_code_path().parent.stat().st_mode & 0o777 == 0o700


def test_what_others_could_have_written_does_not_count():
    remember(OWN)
    for mode in (0o620, 0o602, 0o666):
        known_code_path().chmod(mode)
        assert known_code() == set()
    known_code_path().chmod(0o600)
    assert known_code() == {OWN}
    if os.getuid() == 0:  # only root can give a file away
        os.chown(known_code_path(), 12345, 12345)
        assert known_code() == set()


def test_lines_that_are_none_are_left_out():
    remember(OWN)
    lines = ["", "{", "[]", "{}", '{"flag": ["env"], "name": "a:b", "env_kwargs": null, "file": "c"}']
    with known_code_path().open("a") as file:
        file.write("\n".join(lines) + "\n")
    assert known_code() == {OWN}


def test_without_a_place_to_write_to_it_says_what_that_means(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "taken"))
    (said,) = remember(OWN)
    assert said.startswith("env 'own:Env' cannot be remembered (")
    assert "--trust true" in said
    assert known_code() == set()
