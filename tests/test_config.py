"""Wrong settings are found before anything starts, and said in one sentence."""

import dataclasses
import resource

import pytest
import yaml

from sf import presets
from sf.cli import parse
from sf.config import Config
from sf.plan import make_plan
from sf.run_dir import RunDir


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"batch_size": 1000}, "batch_size is 1000: it must be a multiple of rollout"),
        ({"num_envs_per_worker": 5}, "it must be a multiple of worker_num_splits"),
        ({"gamma": 1.5}, "gamma is 1.5: from 0 to 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: it must be above 0"),
        ({"lr_schedule": "linear"}, "it needs train_for_env_steps"),
        ({"vtrace_c": 2.0}, "V-trace needs rho >= c"),
        ({"env_kwargs": "[1]"}, "it must be a JSON object"),
        ({"experiment": "a/b"}, "without '/'"),
        ({"async_rl": False, "policy_workers_per_policy": 2}, "synchronous training uses 1"),
        ({"bacth_size": 32}, "unknown setting bacth_size"),
    ],
)
def test_a_broken_rule_names_the_flag_and_what_to_change(flags, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        Config().replace(**flags)


def test_no_flag_name_belongs_to_two_components():
    components = [getattr(Config(), field.name) for field in dataclasses.fields(Config)]
    assert len(Config().flat()) == sum(len(dataclasses.fields(component)) for component in components)


def test_flags_win_over_the_preset_of_the_environment():
    config = parse(["--env", "doom_basic", "--learning_rate", "0.5"])
    assert config.model.core == "gru"
    assert config.learner.learning_rate == 0.5


def test_config_names_another_preset():
    config = parse(["--env", "CartPole-v1", "--config", "doom_battle"])
    assert (config.run.env, config.model.core) == ("CartPole-v1", "gru")


def test_a_family_has_a_preset_for_every_member():
    assert presets.for_env("atari_pong") == presets.for_env("ALE/Pong-v5") == presets.load("atari")
    assert presets.for_env("unheard_of") == {}


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_is_a_valid_configuration(name):
    Config().replace(**presets.load(name))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--num_worker", "3"], "--num_workers"),
        (["--async_rl", "maybe"], "neither true nor false"),
        (["--batch_size", "1000"], "multiple of rollout"),
        (["--config", "dom_basic"], "did you mean 'doom_basic'"),
    ],
)
def test_a_wrong_flag_ends_with_status_2_and_says_what_to_change(args, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        parse(args)
    assert end.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_a_resumed_run_reads_the_configuration_it_was_started_with(tmp_path):
    started = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--rollout", "8", "--batch_size", "64"])
    RunDir.at(str(tmp_path), "toy_bandit").prepare(started)
    resumed = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--seed", "5"])
    assert (resumed.sampler.rollout, resumed.learner.batch_size, resumed.run.seed) == (8, 64, 5)


def test_a_run_is_not_resumed_on_another_environment(tmp_path, capsys):
    started = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--experiment", "x"])
    RunDir.at(str(tmp_path), "x").prepare(started)
    with pytest.raises(SystemExit) as end:
        parse(["--env", "toy_memory", "--train_dir", str(tmp_path), "--experiment", "x"])
    assert end.value.code == 2
    assert "was trained on 'toy_bandit'" in " ".join(capsys.readouterr().err.split())


def test_a_preset_for_a_run_that_is_there_is_refused_unless_it_is_the_one_it_has(tmp_path, capsys):
    here = ["--env", "toy_identity", "--train_dir", str(tmp_path)]
    RunDir.at(str(tmp_path), "toy_identity").prepare(parse([*here, "--config", "CartPole-v1"]))
    assert parse([*here, "--config", "CartPole-v1"]).run.config == "CartPole-v1"
    assert parse(here).run.config == "CartPole-v1"
    with pytest.raises(SystemExit):
        parse([*here, "--config", "doom"])
    assert "goes on with the settings that it was started with: name another --experiment" in capsys.readouterr().err
    parse([*here, "--config", "doom", "--experiment", "other"])


def test_the_configuration_of_a_run_is_a_preset_for_another(tmp_path):
    run = RunDir.at(str(tmp_path), "toy_identity")
    run.prepare(parse(["--env", "toy_identity", "--train_dir", str(tmp_path), "--gamma", "0.5"]))
    again = ["--train_dir", str(tmp_path), "--config", str(run.config), "--experiment", "again"]
    config = parse(again)
    assert (config.run.env, config.learner.gamma, config.run.experiment_name) == ("toy_identity", 0.5, "again")


def test_restart_moves_the_earlier_run_aside_and_overwrite_removes_it(tmp_path):
    flags = ["--env", "toy_bandit", "--train_dir", str(tmp_path)]
    run_dir = RunDir.at(str(tmp_path), "toy_bandit")
    run_dir.prepare(parse(flags))
    (run_dir.path / "mark").write_text("first")
    run_dir.prepare(parse([*flags, "--restart_behavior", "restart"]))
    assert (tmp_path / "toy_bandit.old1" / "mark").read_text() == "first"
    assert not (run_dir.path / "mark").exists()
    (run_dir.path / "mark").write_text("second")
    run_dir.prepare(parse([*flags, "--restart_behavior", "overwrite"]))
    assert not (run_dir.path / "mark").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["toy_bandit", "toy_bandit.old1"]


def test_a_directory_that_is_no_run_is_left_alone(tmp_path):
    (tmp_path / "toy_bandit").mkdir()
    (tmp_path / "toy_bandit" / "thesis.tex").write_text("years of work")
    config = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--restart_behavior", "overwrite"])
    with pytest.raises(ValueError, match="it is not a run"):
        RunDir.at(str(tmp_path), "toy_bandit").prepare(config)
    assert (tmp_path / "toy_bandit" / "thesis.tex").exists()


def test_the_written_configuration_is_whole(tmp_path):
    config = parse(["--env", "toy_bandit", "--train_dir", str(tmp_path), "--encoder_mlp_layers", "7", "9"])
    run_dir = RunDir.at(str(tmp_path), "toy_bandit")
    run_dir.prepare(config)
    saved = yaml.safe_load(run_dir.config.read_text())
    assert Config().replace(**saved, train_dir=str(tmp_path)) == config


def test_more_processes_than_the_system_grants_descriptors_for_are_refused(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 1024))
    config = Config().replace(env="toy_identity", num_envs_per_worker=2, device="cpu")
    make_plan(config.replace(num_workers=100))
    with pytest.raises(ValueError, match="system grants 1024: lower --num_workers"):
        make_plan(config.replace(num_workers=200))
