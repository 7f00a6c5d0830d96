"""The run that surgery writes: all that was counted, whole or not at all."""

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest
import torch

from sf.config import Config
from sf.envs import ActionSpec, describe
from sf.envs.errors import UsageError
from sf.league import record
from sf.league.players.snapshots import beginning_of, kept_at
from sf.league.record import Player
from sf.learner.checkpoints.content import make_checkpoint
from sf.learner.update import Updater
from sf.run.planning import describe_networks
from sf.storage import best_checkpoint, checkpoint
from sf.storage.run_dir import RunDir
from sf.surgery import new_run
from sf.surgery.operated import Request
from sf.surgery.subject import Subject

ENV = "growing_env:Growing"
FLAGS = {"env": ENV, "encoder_mlp_layers": (8,), "num_policies": 2, "compile": False, "critic_clock": False}
KINDS = {"num_entries": 6, "num_choices": 4}


def config_of(**flags):
    return Config().replace(**{**FLAGS, **flags})


def saved_policy(config, env_steps, seed=0):
    torch.manual_seed(seed)
    spec = describe(ENV, config.environment)
    updater = Updater(config, spec.obs_space, ActionSpec.of(spec.action_space), False, torch.device("cpu"))
    return make_checkpoint(updater, config, spec, env_steps=env_steps)


@pytest.fixture
def run(tmp_path):
    """A run of two policies with a best checkpoint, a league, and an earlier checkpoint that is whole."""
    config = config_of(train_dir=str(tmp_path), experiment="run")
    run_dir = RunDir(tmp_path / "run")
    run_dir.prepare(config, "an id")
    run_dir.metrics.write_text('{"env_steps": 500}\n')
    (run_dir.path / "population.jsonl").write_text("{}\n")
    for policy_id in range(2):
        directory = run_dir.checkpoints_of(policy_id, 2)
        for env_steps in (500, 900 + policy_id):
            checkpoint.save(directory, saved_policy(config, env_steps, policy_id), env_steps, keep=2)
        best_checkpoint.save_best(directory, saved_policy(config, 700, policy_id), score=0.5)
    league = run_dir.path / "league"
    league.mkdir()
    snapshot = checkpoint.without_optimizer(saved_policy(config, 100))
    checkpoint.write(kept_at(run_dir.path, "policy_00_000000000100"), snapshot)
    checkpoint.write(beginning_of(run_dir.path, 1), saved_policy(config, 0, 1))
    path = "league/policy_00_000000000100.safetensors"
    record.append(run_dir.path / record.NAME, [Player("policy_00_000000000100", 0, 100, path)])
    return run_dir


def operate(run, out, said=lambda line: None, is_dry=False, **flags):
    config, _, teams, networks = describe_networks(config_of(**flags))
    requests = [
        Request(Subject.of_spec(config.model, network.spec, teams), config, policy_id)
        for policy_id, network in enumerate(networks)
    ]
    new_run.write(run, out, requests, said, is_dry)


def files_in(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_a_run_goes_on_with_all_that_it_has_counted(run, tmp_path):
    out = RunDir(tmp_path / "new")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    operate(run, out.path, env_kwargs=json.dumps(KINDS), encoder_mlp_layers=(12,))
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    assert out.saved_flags()["encoder_mlp_layers"] == [12]
    assert out.saved_id() not in (None, "an id")
    assert out.metrics.read_bytes() == run.metrics.read_bytes()
    assert files_in(out.path) == files_in(run.path) - {
        f"checkpoints/policy_0{n}/checkpoint_000001_000000000500.safetensors" for n in range(2)
    } | {f"league/before_surgery_1/{path.name}" for path in (run.path / "league").iterdir()}
    for policy_id in range(2):
        directory = out.checkpoints_of(policy_id, 2)
        latest = checkpoint.load(checkpoint.latest(directory))
        assert latest.state["env_steps"] == 900 + policy_id
        assert best_checkpoint.best_score(directory) == 0.5
        for saved in (latest, best_checkpoint.load_best(directory)[1]):
            assert saved.tensors["model/trunk.actor.encoders.0.linear.0.weight"].shape == (12, 6)
            assert saved.tensors["model/policy_head.weight"].shape == (4, 12)


def test_snapshots_never_take_a_choice_that_they_did_not_know(run, tmp_path):
    operate(run, tmp_path / "new", env_kwargs=json.dumps(KINDS))
    snapshot = checkpoint.load(kept_at(tmp_path / "new", "policy_00_000000000100"))
    original = checkpoint.load(tmp_path / "new" / "league" / "before_surgery_1" / "policy_00_000000000100.safetensors")
    assert torch.equal(snapshot.tensors["model/policy_head.bias"][:3], original.tensors["model/policy_head.bias"])
    assert snapshot.tensors["model/policy_head.bias"][3] < -1000
    exploiter = checkpoint.load(beginning_of(tmp_path / "new", 1))
    assert exploiter.tensors["model/policy_head.bias"][3] > -100


def test_new_choices_have_the_probability_that_was_asked_for(run, tmp_path):
    operate(run, tmp_path / "new", env_kwargs=json.dumps({"num_choices": 5}))
    policy = checkpoint.load(checkpoint.latest(RunDir(tmp_path / "new").checkpoints_of(0, 2)))
    bias = policy.tensors["model/policy_head.bias"]
    assert bias[3] == bias[4]
    # A policy that nobody has trained is nearly uniform.
    assert float(bias.softmax(0)[3:].sum()) == pytest.approx(0.01, rel=0.05)


def test_a_dry_run_shows_the_tables_and_writes_nothing(run, tmp_path):
    said = []
    before = files_in(tmp_path)
    operate(run, tmp_path / "new", said.append, is_dry=True, env_kwargs=json.dumps(KINDS))
    assert len(said) == 2
    assert all("policy_head.weight" in table and "3x8 -> 4x8" in table for table in said)
    assert {name for name in files_in(tmp_path) if not name.endswith(".lock")} == before


def test_what_cannot_be_done_leaves_nothing(run, tmp_path):
    with pytest.raises(UsageError, match="--inexact true"):
        operate(run, tmp_path / "new", env_kwargs=json.dumps({"num_entries": 2}))
    assert not (tmp_path / "new").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".surgery")]


def test_a_directory_that_is_there_is_refused(run, tmp_path):
    (tmp_path / "new").mkdir()
    with pytest.raises(UsageError, match="name a new directory"):
        operate(run, tmp_path / "new")


@pytest.mark.parametrize("num_writes", range(7))
@pytest.mark.parametrize("place", ["before", "inside"])
def test_a_kill_leaves_nothing_or_all_and_the_next_one_succeeds(run, tmp_path, num_writes, place):
    child = multiprocessing.get_context("fork").Process(target=killed_at_write, args=(run, tmp_path, num_writes, place))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert not (tmp_path / "new").exists()
    operate(run, tmp_path / "new", encoder_mlp_layers=(12,))
    assert checkpoint.latest(RunDir(tmp_path / "new").checkpoints_of(1, 2)) is not None
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".surgery")]


def killed_at_write(run, tmp_path, num_writes, place):
    """Operates, and is killed as it writes the file with this number; the seventh is the flags."""
    counted = 0

    def killing(write):
        def counting(path, data, *others):
            nonlocal counted
            counted += 1
            if counted > num_writes:
                if place == "inside":
                    Path(path).parent.mkdir(parents=True, exist_ok=True)
                    Path(path).write_bytes(b"half")
                os.kill(os.getpid(), signal.SIGKILL)
            return write(path, data, *others)

        return counting

    new_run.tensor_files.write = killing(new_run.tensor_files.write)
    new_run.write_atomically = killing(new_run.write_atomically)
    operate(run, tmp_path / "new", encoder_mlp_layers=(12,))
