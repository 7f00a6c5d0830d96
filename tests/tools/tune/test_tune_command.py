"""A real search of tiny runs, as a user starts it: killed, resumed, and its best trained again."""

import subprocess
import sys
import time

import pytest
import warm
import yaml
from faults import processes

from sf.config import Config
from sf.storage import run_lock
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli
from sf.tools.sweep.launchers.local import LocalLauncher
from sf.tools.tune import command
from sf.tools.tune.tuner import Tuner

PROGRAM = "from sf.tools.commands.entry_points import sf_tune; sf_tune()"
FILE = {
    "flags": {
        "env": "toy_bandit",
        "num_workers": 1,
        "num_envs_per_worker": 2,
        "batch_size": 64,
        "rollout": 8,
        "device": "cpu",
        "encoder_mlp_layers": [8],
        "train_for_env_steps": 1024,
        "summaries_every_sec": 0.2,
    },
    "search": {"learning_rate": {"low": 0.0001, "high": 0.01, "log": True}, "nonlinearity": ["tanh", "relu"]},
    "trials": 2,
}


def start(path, *flags, **kwargs):
    words = [sys.executable, "-c", PROGRAM, str(path / "tune.yaml"), "--train_dir", str(path), *flags]
    return warm.Popen(
        words, starts_commands=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs
    )


@pytest.mark.long
def test_a_search_that_is_killed_goes_on_and_its_best_is_a_preset(tmp_path):
    (tmp_path / "tune.yaml").write_text(yaml.safe_dump(FILE))
    killed = start(tmp_path, "--parallel", "1")
    while not (tmp_path / "tune" / "trial_00000" / "metrics.jsonl").exists():
        assert killed.poll() is None
        time.sleep(0.1)
    below = processes.alive_below(killed.pid)
    killed.kill()
    killed.communicate()
    assert processes.wait_until_gone(below, timeout_s=60.0) == set()
    output, _ = start(tmp_path, "--parallel", "1").communicate(timeout=300)
    assert "goes on: 0 trials are over, 1 under way" in output
    assert output.count("mean_return ") >= 2
    lines = (tmp_path / "tune" / "trials.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [[str(number), "done"] for number in range(2)]
    best = cli.parse(["--config", str(tmp_path / "tune" / "best.yaml")])
    assert best.model.nonlinearity in ("tanh", "relu")
    assert best.run.train_for_env_steps == 1024
    assert (tmp_path / "tune" / "search.png").exists()


def written(path, change, *flags):
    """The words of the command, whose file is written with this change."""
    file = {**FILE, **change}
    file["flags"] = {name: value for name, value in file["flags"].items() if name not in file["search"]}
    (path / "tune.yaml").write_text(yaml.safe_dump(file))
    return [path / "tune.yaml", "--train_dir", path, *flags]


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        ({"search": {"gamma": [1.5, 2.0]}}, [], "tune.yaml: gamma is 1.5"),
        ({"flags": {"env": "toy_bandit"}}, [], "a run has no end in env steps"),
        ({"search": {"stop_at_return": [0.5, None]}}, [], "stop_at_return is 0.5 in some"),
        ({"sampler": "gp"}, [], "the sampler gp needs scipy"),
        ({}, ["--trials", "0"], "trials is 0"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_starts(
    change, flags, message, tmp_path, monkeypatch, capsys, status_of
):
    monkeypatch.setattr(command, "find_spec", lambda name: None)  # of scipy
    assert status_of(command.main, *written(tmp_path, change, *flags)) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "tune").exists()


def test_a_directory_that_another_start_or_a_run_has_is_refused(tmp_path, status_of, capsys):
    with run_lock.held(tmp_path / "tune"):
        assert status_of(command.main, *written(tmp_path, {})) == 2
    assert "name another --train_dir" in capsys.readouterr().err
    RunDir(tmp_path / "tune").prepare(Config().replace(env="toy_bandit"))
    assert status_of(command.main, *written(tmp_path, {})) == 2
    assert "tune is a run" in capsys.readouterr().err
    assert not (tmp_path / "tune" / "study.journal").exists()


def test_a_dry_run_prints_a_command_and_leaves_nothing(tmp_path, status_of, capsys):
    assert status_of(command.main, *written(tmp_path, {}, "--dry_run", "true")) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("sf-train ")
    assert "--env toy_bandit" in printed.out
    assert printed.err == ""
    assert not (tmp_path / "tune").exists()


def test_bounds_and_choices_that_cannot_run_are_said(tmp_path, status_of, capsys):
    words = written(tmp_path, {"search": {"gamma": [2.0, 0.9]}}, "--dry_run", "true")
    assert status_of(command.main, *words) == 0
    printed = capsys.readouterr()
    assert "--gamma 0.9" in printed.out
    assert "tune.yaml: gamma is 2.0" in printed.err


@pytest.mark.parametrize(
    ("change", "places"),
    [({"trials": 2, "seeds": 2}, 4), ({"search": {"num_workers": [1, 16]}, "trials": 9}, 4), ({"trials": 99}, 64)],
)
def test_runs_at_once_are_as_many_as_there_are_and_as_have_cores_for_all_their_workers(
    tmp_path, monkeypatch, change, places, status_of
):
    opened = []
    monkeypatch.setattr("sf.tools.sweep.launchers.local.num_usable_cores", lambda: 64)
    monkeypatch.setattr(LocalLauncher, "open", lambda self, directory, places, say: opened.append(places))
    monkeypatch.setattr(Tuner, "run", lambda self, signals: None)
    assert status_of(command.main, *written(tmp_path, change)) == 1
    assert opened == [places]
