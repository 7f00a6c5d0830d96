"""What a run says when it begins."""

import pytest
import yaml

from sf.run.planning import make_plan
from sf.run.startup import startup_messages
from sf.run.startup.starting_flags import make_config
from sf.storage.run_dir import RunDir

SMALL = {"num_workers": 1, "num_envs_per_worker": 2, "rollout": 8, "batch_size": 16, "device": "cpu"}


@pytest.fixture
def begin(tmp_path):
    """A function: begins a run with these flags, or resumes it. Returns what it says."""

    def begin(resumed_steps=0, **flags):
        config = make_config(**{"env": "toy_identity", "train_dir": str(tmp_path), **SMALL, **flags})
        run_dir = RunDir.at(str(tmp_path), config.run.experiment_name)
        said = list(startup_messages.startup_messages(make_plan(config), run_dir.path, resumed_steps))
        run_dir.prepare(config)
        return "\n".join(said)

    return begin


@pytest.mark.parametrize(
    ("has_it", "precision", "says"), [(False, "bfloat16", True), (True, "bfloat16", False), (False, "float32", False)]
)
def test_a_precision_for_which_there_are_no_instructions_is_said(has_it, precision, says, begin, monkeypatch):
    monkeypatch.setattr(startup_messages, "has_bfloat16", lambda device: has_it)
    assert ("precision is bfloat16, for which this CPU has no instructions" in begin(precision=precision)) == says


def test_a_run_that_is_resumed_says_so_and_one_whose_checkpoints_are_gone_that_it_begins_at_0(begin, tmp_path):
    run = tmp_path / "toy_identity"
    new = begin()
    assert f"resumes {run} at 64 env steps (--restart_behavior restart starts over" in begin(resumed_steps=64)
    (run / "metrics.jsonl").write_text("{}\n")
    again = begin()
    assert ["has records of an earlier start and no checkpoint" in said for said in (new, again)] == [False, True]
    assert "resumes" not in new + again


def test_a_resumed_run_says_what_its_file_of_flags_says_meanwhile(begin, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"env": "toy_identity", "learning_rate": 0.001, "train_for_env_steps": 64}))
    assert "yaml says" not in begin(config=str(file)) + begin(64, config=str(file), train_for_env_steps=128)
    file.write_text(yaml.safe_dump({"env": "toy_identity", "learning_rate": 0.002, "train_for_env_steps": 64}))
    said = begin(128, config=str(file), train_for_env_steps=192)
    assert f"{file} says learning_rate 0.002 (the run: 0.001): a run keeps the settings" in said
    file.unlink()
    assert "yaml says" not in begin(
        192, experiment="toy_identity", train_for_env_steps=256
    )  # it is not needed any more


def test_a_run_that_began_with_the_settings_of_another_has_nothing_to_say_of_them(begin, tmp_path):
    begin(experiment="one", train_for_env_steps=64, config="vector")
    config = str(tmp_path / "one" / "config.yaml")
    begin(config=config, experiment="two", train_for_env_steps=256)
    said = begin(256, config=config, experiment="two", train_for_env_steps=1024)
    assert f"resumes {tmp_path / 'two'}" in said
    assert "config.yaml says" not in said
