"""Sweeps and searches of tiny runs on a stand-in for SLURM, as a user starts them."""

import csv
import signal
import subprocess
import sys
import time

import pytest
import warm
import yaml
from safetensors.numpy import load_file

from sf.system.machine import extras
from sf.tools.sweep import command as sweep_command
from sf.tools.sweep.launchers import slurm
from sf.tools.tune import command as tune_command

FLAGS = {
    "num_workers": 1,
    "num_envs_per_worker": 2,
    "batch_size": 64,
    "rollout": 8,
    "device": "cpu",
    "encoder_mlp_layers": [8],
    "train_for_env_steps": 256,
}
ON_SLURM = ["--launcher", "slurm"]
# Of a run that is the same however it was started, but for how fast that was.
FACTS = ("run", "gamma", "seed", "state", "env_steps", "policy_version")


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(slurm, "_LOOK_EVERY_S", 0.2)
    monkeypatch.setattr(slurm, "_ASK_EVERY_S", 0.5)


def write(path, **sweep):
    (path / "small.yaml").write_text(yaml.safe_dump(sweep))


def arguments(path, *flags, train_dir="here"):
    return [str(path / "small.yaml"), "--train_dir", str(path / train_dir), *flags]


def start(path, *flags):
    program = (
        "from sf.tools.sweep import command; from sf.tools.sweep.launchers import slurm; "
        "slurm._LOOK_EVERY_S, slurm._ASK_EVERY_S = 0.1, 0.2; command.main()"
    )
    return warm.Popen([sys.executable, "-c", program, *arguments(path, *flags)], stdout=subprocess.PIPE, text=True)


def rows(path, train_dir="here"):
    return list(csv.DictReader((path / train_dir / "small" / "results.csv").open()))


def trained(path, train_dir, run):
    """The tensors of the run's last checkpoint."""
    [file] = (path / train_dir / "small" / run / "checkpoints").glob("checkpoint_*.safetensors")
    return load_file(file)


def read_until(process, words):
    said = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            return "".join(said)
    raise AssertionError("".join(said))


def test_what_sbatch_refuses_is_one_sentence(cluster, tmp_path, status_of, capsys):
    write(tmp_path, flags=FLAGS | {"env": "toy_bandit"})
    assert status_of(sweep_command.main, *arguments(tmp_path, *ON_SLURM, "--partition", "nowhere")) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert "the job of seed=0: invalid partition specified: nowhere; Batch job submission failed" in said
    assert cluster.ids == []


def test_a_machine_without_slurm_or_submitit_is_one_sentence_before_anything_starts(
    tmp_path, monkeypatch, capsys, status_of
):
    write(tmp_path, flags=FLAGS | {"env": "toy_bandit"})
    monkeypatch.setattr(extras, "find_spec", lambda name: object())
    monkeypatch.setattr(slurm.shutil, "which", lambda name: None)
    assert status_of(sweep_command.main, *arguments(tmp_path, *ON_SLURM)) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith("error: --launcher slurm needs sbatch and srun and squeue and scancel")
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert status_of(sweep_command.main, *arguments(tmp_path, *ON_SLURM)) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith("error: --launcher slurm needs submitit")
    assert not (tmp_path / "here").exists()


@pytest.mark.long
def test_a_sweep_gives_the_same_table_on_a_cluster_as_on_one_machine(cluster, tmp_path, status_of, capsys):
    write(tmp_path, flags=FLAGS | {"env": "toy_bandit", "async_rl": False}, grid={"gamma": [0.9, 0.95]})
    with warm.everywhere():
        assert status_of(sweep_command.main, *arguments(tmp_path, *ON_SLURM, "--parallel", "2", train_dir="there")) == 0
        assert status_of(sweep_command.main, *arguments(tmp_path)) == 0
    of_cluster, of_machine = rows(tmp_path, "there"), rows(tmp_path)
    assert len(cluster.ids) == len(of_machine) == 2
    assert [[row.get(name) for name in FACTS] for row in of_cluster] == [
        [row.get(name) for name in FACTS] for row in of_machine
    ]
    # The returns of the last half second are in the table only where their worker had sent them: weights tell.
    for row in of_machine:
        ours, theirs = (trained(tmp_path, directory, row["run"]) for directory in ("here", "there"))
        assert [name for name in ours if (ours[name] != theirs[name]).any()] == []
    assert status_of(sweep_command.main, *arguments(tmp_path, *ON_SLURM, train_dir="there")) == 0
    assert "2 of 2 runs are done already" in capsys.readouterr().out
    assert len(cluster.ids) == 2


@pytest.mark.long
def test_a_job_goes_on_after_ctrl_c_and_where_its_machine_dies_another_one_from_the_checkpoint(cluster, tmp_path):
    write(tmp_path, flags=FLAGS | {"env": "toy_bandit", "train_for_env_steps": 6000, "save_every_sec": 0.5})
    process = start(tmp_path, *ON_SLURM)
    read_until(process, "submitted job 101: seed=0")
    process.send_signal(signal.SIGINT)
    said = process.stdout.read()
    assert process.wait(60) == 130
    assert "jobs that go on without this command: 101; scancel ends them" in said
    assert "the same command goes on: sf-sweep" in said
    assert cluster.state("101") in ("PENDING", "RUNNING")
    again = start(tmp_path, *ON_SLURM)
    read_until(again, "job 101 goes on: seed=0")
    while not list((tmp_path / "here" / "small" / "seed=0" / "checkpoints").glob("*.safetensors")):
        assert again.poll() is None
        time.sleep(0.05)
    cluster.lose("101", "NODE_FAIL")
    said = again.communicate(timeout=300)[0]
    assert "job 101 of seed=0 has ended as NODE_FAIL: job 102 goes on with it (1 of 5)" in said
    assert again.returncode == 0
    assert cluster.ids == ["101", "102"]
    assert [row["state"] for row in rows(tmp_path)] == ["done"]
    assert "resume" in (tmp_path / "here" / "small" / "seed=0.log").read_text()


@pytest.mark.long
def test_a_search_on_a_cluster_comes_to_its_end(cluster, tmp_path, status_of, capsys):
    pytest.importorskip("optuna")
    space = {"learning_rate": {"low": 0.0001, "high": 0.01, "log": True}}
    (tmp_path / "tune.yaml").write_text(
        yaml.safe_dump({"flags": FLAGS | {"env": "toy_bandit"}, "search": space, "trials": 2})
    )
    words = [tmp_path / "tune.yaml", "--train_dir", tmp_path, *ON_SLURM, "--parallel", "1"]
    assert status_of(tune_command.main, *words) == 0
    assert "submitted job 102: trial_00001: learning_rate" in capsys.readouterr().out
    assert (tmp_path / "tune" / "best.yaml").exists()
    assert cluster.ids == ["101", "102"]
