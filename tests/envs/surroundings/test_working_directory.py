from pathlib import Path

import pytest
from moving_env import Moving, MovingAndRaising

from sf import envs
from sf.envs import EnvError, EnvOptions
from sf.envs.surroundings import working_directory


def test_an_environment_that_is_described_leaves_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs.register_env("moving", Moving)
    envs.describe("moving", EnvOptions())
    assert Path.cwd() == tmp_path


def test_one_that_raises_leaves_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs.register_env("moving", MovingAndRaising)
    with pytest.raises(EnvError, match="it raises there"):
        envs.describe("moving", EnvOptions())
    assert Path.cwd() == tmp_path


def test_a_directory_is_kept_that_has_another_name_meanwhile(tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with working_directory.kept():
        monkeypatch.chdir(tmp_path)
        here.rename("there")
    assert Path.cwd() == tmp_path / "there"


def test_environments_are_made_in_a_directory_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    envs.make_group("keyed_env:Keyed", 1, EnvOptions(), seed=0, first_env_idx=0).close()
    envs.describe("keyed_env:Keyed", EnvOptions())
