"""What a run says when it begins."""

import pytest
import yaml

import sf
from sf.run.startup import startup_messages

SMALL = {"num_workers": 1, "num_envs_per_worker": 2, "rollout": 8, "batch_size": 16, "device": "cpu"}


@pytest.mark.parametrize(
    ("has_it", "precision", "says"), [(False, "bfloat16", True), (True, "bfloat16", False), (False, "float32", False)]
)
def test_a_precision_for_which_there_are_no_instructions_is_said(has_it, precision, says, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(startup_messages, "has_bfloat16", lambda device: has_it)
    sf.train(env="toy_identity", train_for_env_steps=64, train_dir=str(tmp_path), precision=precision, **SMALL)
    said = "".join(capfd.readouterr())
    assert ("precision is bfloat16, for which this CPU has no instructions" in said) == says


def test_a_run_that_is_resumed_says_so(tmp_path, capfd):
    said = []
    for env_steps in (64, 128):
        sf.train(env="toy_identity", train_for_env_steps=env_steps, train_dir=str(tmp_path), **SMALL)
        said.append("".join(capfd.readouterr()))
    assert "resumes" not in said[0]
    assert f"resumes {tmp_path / 'toy_identity'} at 64 env steps (--restart_behavior restart starts over" in said[1]


def test_a_run_whose_checkpoints_are_gone_says_that_it_begins_at_0(tmp_path, capfd):
    said = []
    for _ in range(2):
        sf.train(env="toy_identity", train_for_env_steps=64, train_dir=str(tmp_path), **SMALL)
        said.append("".join(capfd.readouterr()))
        for file in (tmp_path / "toy_identity" / "checkpoints").iterdir():
            file.unlink()
    assert ["has records of an earlier start and no checkpoint" in each for each in said] == [False, True]


def test_a_resumed_run_says_what_its_file_of_flags_says_meanwhile(tmp_path, capfd):
    file = tmp_path / "mine.yaml"
    where = {"config": str(file), "train_dir": str(tmp_path)}
    said = []
    for env_steps, rate in ((64, 0.001), (128, 0.001), (192, 0.002)):
        file.write_text(
            yaml.safe_dump({"env": "toy_identity", "learning_rate": rate, "train_for_env_steps": 64, **SMALL})
        )
        sf.train(**where, train_for_env_steps=env_steps)
        said.append("".join(capfd.readouterr()))
    assert [f"{file} says" in each for each in said] == [False, False, True]
    assert f"{file} says learning_rate 0.002 (the run: 0.001): a run keeps the settings" in said[2]
    file.unlink()
    assert sf.train(experiment="toy_identity", train_dir=str(tmp_path), train_for_env_steps=256)["env_steps"] >= 256


def test_a_run_that_began_with_the_settings_of_another_has_nothing_to_say_of_them(tmp_path, capfd):
    where = {"train_dir": str(tmp_path)}
    sf.train(env="toy_identity", experiment="one", train_for_env_steps=64, config="vector", **where, **SMALL)
    for env_steps in (256, 1024):
        config = str(tmp_path / "one" / "config.yaml")
        sf.train(config=config, experiment="two", train_for_env_steps=env_steps, **where)
    said = "".join(capfd.readouterr())
    assert f"resumes {tmp_path / 'two'}" in said
    assert "config.yaml says" not in said
