"""What a preset or an earlier part of a run says counts where the flags say nothing."""

import pytest
import yaml

from sf.run.startup.starting_flags import make_config
from sf.tools.commands import cli

FRAMESKIP = 4


def target_of(**flags):
    """By the command line and from Python."""
    flags["env"] = "doom_basic"
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    (target,) = {config.run.target_env_steps(FRAMESKIP) for config in (make_config(**flags), cli.parse(words))}
    return target


def test_an_end_in_frames_takes_the_place_of_a_preset_with_an_end_in_steps():
    of_preset = target_of()
    assert of_preset == 150_000
    assert target_of(train_for_env_frames=4 * of_preset + 400) == of_preset + 100
    assert target_of(train_for_env_frames=400) == 100
    assert target_of(train_for_env_steps=2 * of_preset) == 2 * of_preset
    assert target_of(train_for_seconds=60.0) == of_preset  # whichever comes first


def test_both_ends_that_the_flags_name_count():
    assert target_of(train_for_env_steps=50, train_for_env_frames=400) == 50


@pytest.mark.parametrize("saved", [{"train_for_env_steps": 100}, {"train_for_env_frames": 400}])
def test_a_resumed_run_goes_on_to_a_later_end_of_either_kind(tmp_path, saved):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text(yaml.safe_dump({"env": "doom_basic", "config": "doom_basic", **saved}))
    flags = {"train_dir": str(tmp_path), "experiment": "run"}
    assert target_of(**flags) == 100
    assert target_of(**flags, train_for_env_frames=4000) == 1000
    assert target_of(**flags, train_for_env_steps=1000) == 1000


def test_an_end_of_none_leaves_the_settings_of_the_run_as_they_were(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text(yaml.safe_dump({"env": "doom_basic", "config": "doom_basic", "gamma": 0.9}))
    words = ["--train_dir", str(tmp_path), "--experiment", "run", "--env", "doom_basic"]
    assert cli.parse([*words, "--train_for_env_frames", "None"]).learner.gamma == 0.9


@pytest.mark.parametrize("restart_behavior", ["restart", "overwrite"])
def test_a_run_that_is_started_over_keeps_its_environment_or_gets_one_that_is_named(tmp_path, restart_behavior):
    run = tmp_path / "run"
    run.mkdir()
    where = {"train_dir": str(tmp_path), "experiment": "run", "restart_behavior": restart_behavior}
    (run / "config.yaml").write_text(yaml.safe_dump({"env": "doom_basic"}))
    with pytest.raises(ValueError, match=r"env is not named, .* 'doom_basic'"):
        make_config(**where)
    assert make_config(**where, env="toy_bandit").run.env == "toy_bandit"
    assert make_config(**where, config=own_file(tmp_path)).run.env == "doom_basic"
    (run / "config.yaml").write_text("{")  # a broken run may be started over as before
    assert make_config(**where).run.env == "CartPole-v1"


def own_file(tmp_path, **flags):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"env": "doom_basic", **flags}))
    return str(path)


def test_a_file_of_flags_may_name_the_run_which_then_goes_on_as_it_was(tmp_path):
    file = own_file(tmp_path, train_dir=str(tmp_path), experiment="mine", learning_rate=0.02)
    begun = make_config(config=file)
    assert (begun.run.experiment_name, begun.learner.learning_rate) == ("mine", 0.02)
    run = tmp_path / "mine"
    run.mkdir()
    (run / "config.yaml").write_text(yaml.safe_dump({"env": "doom_basic", "config": file, "learning_rate": 0.003}))
    resumed = make_config(config=file)
    assert (resumed.run.train_dir, resumed.run.experiment_name) == (str(tmp_path), "mine")
    assert resumed.learner.learning_rate == 0.003


def test_a_file_of_flags_cannot_say_what_becomes_of_a_run_that_is_there(tmp_path):
    file = own_file(tmp_path, experiment="precious", restart_behavior="overwrite")
    with pytest.raises(ValueError, match=r"own\.yaml sets restart_behavior"):
        make_config(config=file)
