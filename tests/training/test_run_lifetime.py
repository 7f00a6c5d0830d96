"""Runs as a user starts them: how they end, what they leave, and how they go on."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import warm
from faults.processes import alive_below, below, wait_until_gone
from leftovers import in_shared_memory, left_in_shared_memory
from runs import command, flags_of_run, start, train, train_here
from safetensors.numpy import load_file

from sf.__main__ import main
from sf.config import Config
from sf.evaluation.play.policy import load_policy
from sf.storage.checkpoint import load
from sf.system import gpu
from sf.system.processes.stopping import caught_signals
from sf.tools.commands.cli import report


@pytest.fixture
def shm_before():
    return in_shared_memory()


@pytest.mark.parametrize(
    ("env", "signum", "status"),
    [
        pytest.param("toy_identity", signal.SIGTERM, 143, marks=pytest.mark.long),
        ("doom_basic", signal.SIGINT, 130),
    ],
)
def test_a_signal_saves_a_checkpoint_and_leaves_nothing_behind(tmp_path, shm_before, env, signum, status):
    process = start(tmp_path, env=env)
    children = alive_below(process.pid)
    assert len(children) >= 4
    os.killpg(process.pid, signum)  # as a terminal does: to every process of the group
    process.send_signal(signum)  # and a launcher once more
    output, _ = process.communicate(timeout=30)
    assert process.returncode == status, output
    assert wait_until_gone(children, timeout_s=5.0) == set()
    assert left_in_shared_memory(shm_before) == set()
    assert len(list((tmp_path / env / "checkpoints").glob("checkpoint_*.safetensors"))) == 1
    assert json.loads((tmp_path / env / "summary.json").read_text())["stopped_by"] == signum.name
    assert f"{signum.name}: the run saves and ends" in (tmp_path / env / "run.log").read_text()


def test_a_killed_parent_takes_every_process_with_it(tmp_path, shm_before):
    process = start(tmp_path, env="doom_basic")
    children = alive_below(process.pid)
    assert len(children) >= 4
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_until_gone(children, timeout_s=5.0) == set()
    assert left_in_shared_memory(shm_before) == set()


def stop_with_a_dead_learner(tmp_path, meanwhile=lambda: None):
    """A run that is interrupted and whose learner dies before it has saved. meanwhile: done when nothing is saved."""
    process = start(tmp_path)
    pids = {each.name: each.pid for each in below(process.pid)}
    os.kill(pids["learner-0"], signal.SIGSTOP)
    meanwhile()
    process.send_signal(signal.SIGINT)
    assert wait_until_gone({pids["rollout-0"], pids["rollout-1"], pids["policy-0"]}, timeout_s=30.0) == set()
    with suppress(ProcessLookupError):  # its parent has lost patience before
        os.kill(pids["learner-0"], signal.SIGKILL)
    return process


def without_checkpoints(tmp_path):
    """None can be written any more."""
    folder = tmp_path / "toy_identity" / "checkpoints"
    shutil.rmtree(folder)
    folder.touch()


@pytest.mark.long
def test_for_a_learner_that_dies_before_its_last_checkpoint_the_parent_saves_what_it_remembered(tmp_path):
    process = stop_with_a_dead_learner(tmp_path)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    (path,) = (tmp_path / "toy_identity" / "checkpoints").glob("checkpoint_*")
    assert f"learner-0: died of SIGKILL, and could not save; the run resumes from {path}" in " ".join(output.split())
    state = load(path).state
    assert state["env_steps"] > 0
    lost = json.loads((tmp_path / "toy_identity" / "summary.json").read_text())["lost_frames"]
    assert f"training on the last {lost:,} frames is lost" in output
    train_here(tmp_path, "--train_for_env_steps", str(state["env_steps"] + 640))


@pytest.mark.long
def test_where_the_parent_cannot_save_either_it_does_not_go_unsaid(tmp_path):
    process = stop_with_a_dead_learner(tmp_path, partial(without_checkpoints, tmp_path))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert "learner-0 could not save what it had: died of SIGKILL" in output


@pytest.mark.long
def test_a_last_save_that_fails_for_good_ends_the_run_with_one_sentence(tmp_path):
    process = start(tmp_path)
    without_checkpoints(tmp_path)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 1, output
    assert output.count("error:") == 1
    assert "learner-0: the last checkpoint could not be written to" in output
    assert "Traceback" not in output
    assert "Replaced" not in output


def test_where_nohup_has_set_the_hangup_to_be_ignored_it_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with caught_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.long
@pytest.mark.parametrize("is_full", [True, False])
def test_output_that_nobody_can_take_ends_no_run(tmp_path, is_full):
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full" if is_full else writer, "w") as output:
        done = warm.run(
            command(tmp_path, "--train_for_env_steps", "640"),
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "toy_identity" / "summary.json").read_text())["env_steps"] == 640


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A directory with a run that has all its steps, and has saved after each of ten batches; and what it said."""
    directory = tmp_path_factory.mktemp("finished")
    often = ["--save_every_sec", "1e-9", "--save_milestones_sec", "1e-9"]
    return directory, train(directory, "--train_for_env_steps", "640", *often)


@pytest.mark.parametrize(
    ("limits", "summary", "told"),
    [
        ({"train_for_env_steps": 640}, {"env_steps": 640}, "--train_for_env_steps 1280"),
        ({"train_for_env_frames": 2000}, {"env_steps": 500, "env_frames": 2000}, "--train_for_env_frames 4000"),
        ({"train_for_seconds": 12.5}, {"seconds": 12.6}, "--train_for_seconds 25"),
        ({"stop_at_return": 7.0}, {"stopped_by": "stop_at_return"}, "--stop_at_return None"),
        ({}, {"stopped_by": "SIGINT"}, ""),
    ],
)
def test_what_is_printed_to_resume_a_run_raises_the_limit_it_has_come_to_and_no_other(limits, summary, told, capsys):
    ended = {"env_steps": 100, "env_frames": 400, "seconds": 1.0, "stopped_by": None} | summary
    ended |= {"mean_return": None, "env_frames_per_second": 1.0}
    config = Config().replace(env="toy_identity", train_dir="my runs", **limits)
    with pytest.raises(SystemExit):
        report(config, ended)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("resume: "))
    assert line == f"resume: sf-train --train_dir 'my runs' --experiment toy_identity {told}".rstrip()


@pytest.mark.parametrize("limit", [["--train_for_seconds", "0.01"], ["--train_for_env_frames", "640"]])
def test_a_run_that_has_had_its_time_is_not_begun_again_for_nothing(finished, limit):
    directory, _ = finished
    with pytest.raises(ValueError, match=f"raise {limit[0]}"):
        train_here(directory, "--train_for_env_steps", "2000", *limit)


def test_a_finished_run_says_where_it_lies_and_what_to_type_next(finished):
    directory, output = finished
    run = directory / "toy_identity"
    assert str(run) in output
    assert "resume: sf-train" in output
    summary = json.loads((run / "summary.json").read_text())
    assert summary["env_steps"] == summary["env_frames"] == 640
    assert summary["stopped_by"] is None
    for key in (
        "seconds",
        "env_frames_per_second",
        "steady_env_frames_per_second",
        "mean_return",
        "train/lag_mean",
    ):
        assert key in summary
    assert {"rollout/wait_share", "policy/wait_share", "learner/wait_share"} <= summary.keys()
    assert {"config.yaml", "metrics.jsonl", "tensorboard", "checkpoints"} <= {p.name for p in run.iterdir()}


def test_all_that_a_run_says_is_in_its_log(finished):
    directory, output = finished
    said, _, _ = output.partition("run: ")
    in_log = [line[len("2026-01-31 12:00:00 ") :] for line in (directory / "toy_identity/run.log").open()]
    assert [line.strip() for line in in_log[1:-1]] == said.splitlines()


def test_the_previous_checkpoint_is_kept(finished):
    directory, _ = finished
    names = sorted(p.name for p in (directory / "toy_identity" / "checkpoints").glob("checkpoint_*"))
    assert names == ["checkpoint_000009_000000000576.safetensors", "checkpoint_000010_000000000640.safetensors"]


def test_milestones_are_kept_for_good_beside_the_latest_checkpoints(finished):
    directory, output = finished
    milestones = sorted((directory / "toy_identity" / "checkpoints" / "milestones").iterdir())
    assert [load(path).state["env_steps"] for path in milestones] == [64 * (i + 1) for i in range(10)]
    assert all(f"learner-0: keeps {path} for good" in output for path in milestones)
    assert load_policy(milestones[2]).env_steps == 192


def checkpoint(run, index=-1):
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[index])


SYNC = ["--async_rl", "false", "--batch_size", "32", "--core", "gru", "--rnn_size", "8"]


@pytest.mark.long
def test_synchronous_runs_with_one_seed_give_the_same_weights_to_the_bit_and_the_same_score(tmp_path):
    flags = [*SYNC, "--stats_avg", "30", "--train_for_env_steps", "640"]
    summaries = {
        name: train_here(tmp_path, *flags, "--experiment", name, "--seed", seed)
        for name, seed in (("a", "3"), ("b", "3"), ("c", "4"))
    }
    scores = ("mean_return", "std_return", "mean_episode_steps", "episodes", "lost_episodes")
    assert [summaries["a"][name] for name in scores] == [summaries["b"][name] for name in scores]
    a, b, c = (checkpoint(tmp_path / name) for name in "abc")
    assert a.keys() == b.keys() == c.keys()
    assert all(np.array_equal(a[key], b[key]) for key in a)
    assert not all(np.array_equal(a[key], c[key]) for key in a)


@pytest.mark.long
def test_a_synchronous_run_that_was_stopped_and_resumed_equals_one_that_was_not_to_the_bit(tmp_path):
    """With environments whose state is gone by then: here, an episode is one step, without chance."""
    flags = [*SYNC, "--num_epochs", "2", "--num_batches_per_epoch", "2"]
    flags += ["--normalize_returns", "true", "--normalize_input", "true"]
    train_here(tmp_path, *flags, "--experiment", "at_once", "--train_for_env_steps", "1280", env="toy_bandit")
    for steps in ("448", "1280"):
        train_here(tmp_path, *flags, "--experiment", "in_parts", "--train_for_env_steps", steps, env="toy_bandit")
    at_once, in_parts = checkpoint(tmp_path / "at_once"), checkpoint(tmp_path / "in_parts")
    assert at_once.keys() == in_parts.keys()
    assert [key for key in at_once if not np.array_equal(at_once[key], in_parts[key])] == []
    first = checkpoint(tmp_path / "in_parts", 0)
    assert not np.array_equal(first["model/policy_head.weight"], in_parts["model/policy_head.weight"])


def test_a_resumed_run_goes_on_with_counters_optimiser_schedule_and_normalisers(tmp_path):
    flags = ["--lr_schedule", "linear", "--normalize_returns", "true", "--normalize_input", "true"]
    first = train_here(tmp_path, *flags, "--train_for_env_steps", "1280")
    run = tmp_path / "toy_identity"
    before = checkpoint(run)
    second = train_here(tmp_path, "--train_for_env_steps", "2560")  # the flags come from the run
    after = checkpoint(run)
    assert second["env_steps"] == 2560
    assert second["seconds"] > first["seconds"]
    assert second["train/policy_version"] == 2 * first["train/policy_version"] - 1
    assert second["train/learning_rate"] < 1e-4 / 2
    step = next(key for key in before if key.startswith("optimizer/") and key.endswith("/step"))
    assert after[step] == 2 * before[step]
    for name in ("model/value_norm.moments.count", "model/obs_norm.normalizers.0.moments.count"):
        assert after[name] > before[name] > 0
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [record["env_steps"] for record in metrics]
    assert steps == sorted(steps)


@pytest.fixture
def refusal(monkeypatch, capsys):
    """A function that gives the command flags which it refuses, and returns what it says; without a process."""

    def refusal_of(flags):
        monkeypatch.setattr("sys.argv", ["sf-train", *flags])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    return refusal_of


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "raise --train_for_env_steps"),
        (["--core", "gru", "--train_for_env_steps", "1280"], "another network"),
        (["--num_policies", "2", "--train_for_env_steps", "1280"], "num_policies is 2, but the run"),
    ],
)
def test_a_run_that_the_flags_do_not_fit_is_left_as_it_is(finished, refusal, flags, sentence):
    directory, _ = finished
    run = directory / "toy_identity"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert sentence in refusal(flags_of_run(directory, *flags))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("flags", "env", "sentence"),
    [
        ([], "CartPoleee-v1", "CartPole"),
        ([], "doom_basics", "doom_basic"),
        (["--device", "cuda"], "toy_identity", "torch sees no GPU"),
        (["--async_rl", "false", "--batch_size", "24"], "toy_identity", "must be a multiple of the other"),
        (["--num_envs_per_worker", "2000000000"], "toy_identity", "GiB of memory"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts_or_is_touched(tmp_path, refusal, flags, env, sentence):
    if "cuda" in flags and gpu.is_available():
        pytest.skip("there is a GPU")
    assert sentence in refusal(flags_of_run(tmp_path, *flags, env=env))
    assert list(tmp_path.iterdir()) == []
