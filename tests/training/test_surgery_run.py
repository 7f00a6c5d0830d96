"""A run that is operated on and goes on, and one that begins with what it has learned."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import pytest
from runs import train_here

from sf.config.trust import known_code, named_code
from sf.evaluation.play.named_checkpoint import find_checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.commands.surgery import main

ENV = "growing_env:Growing"
WIDER = ["--env_kwargs", '{"num_entries": 6, "num_choices": 5}', "--encoder_mlp_layers", "24", "--core", "gru"]
LARGE_BATCHES = ["--batch_size", "256", "--num_epochs", "5", "--learning_rate", "0.01", "--lr_schedule", "constant"]
WIDER += ["--core_skip", "true", "--rnn_size", "8"]


def surgery(*words):
    """The status of the command, and what it prints."""
    said = io.StringIO()
    with mock.patch.object(sys, "argv", ["sf-surgery", *words]), redirect_stdout(said), redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            return end.code, said.getvalue()
    return 0, said.getvalue()


def records(run):
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A run that has learned its task."""
    tmp_path = tmp_path_factory.mktemp("runs")
    train_here(tmp_path, "--experiment", "before", "--train_for_env_steps", "8000", *LARGE_BATCHES, env=ENV)
    return RunDir(tmp_path / "before")


def test_a_run_goes_on_after_surgery_with_all_that_it_knew(before):
    tmp_path = before.path.parent
    out = RunDir(tmp_path / "after")
    status, said = surgery(str(before.path), "--out", str(out.path), *WIDER)
    assert status == 0, said
    assert "does what it did before" in said
    assert set(named_code(out.saved_flags())) <= known_code()
    saved, operated = (find_checkpoint(run.path)[1].state for run in (before, out))
    assert operated["env_steps"] == saved["env_steps"]
    assert operated["updater"]["version"] == saved["updater"]["version"]
    flags = ["--experiment", "after", "--train_for_env_steps", "10000"]
    train_here(tmp_path, *flags, *LARGE_BATCHES, "--encoder_mlp_layers", "24", env=ENV)
    new = records(out)[len(records(before)) :]
    assert new[0]["env_steps"] >= saved["env_steps"]
    # One of a hundred choices is new, and never pays; chance is a third of 16.
    assert records(before)[-1]["mean_return"] > 8
    assert new[-1]["mean_return"] > 0.95 * records(before)[-1]["mean_return"]
    rates = [record["train/learning_rate"] for record in new if "train/learning_rate" in record]
    assert rates == sorted(rates)
    assert rates[-1] < 0.01
    state = find_checkpoint(out.path)[1].state["updater"]
    assert state["version"] > saved["updater"]["version"]
    assert state["steps_since_surgery"] == state["version"] - saved["updater"]["version"]


def test_a_new_run_begins_at_0_with_what_another_has_learned(before):
    tmp_path = before.path.parent
    flags = ["--experiment", "begun", "--init_from", str(before.path), "--surgery", "true", *WIDER]
    train_here(tmp_path, *flags, *LARGE_BATCHES, "--train_for_env_steps", "3000", env=ENV)
    begun = RunDir(tmp_path / "begun")
    assert records(begun)[-1]["mean_return"] > 0.95 * records(before)[-1]["mean_return"]
    state = find_checkpoint(begun.path)[1].state
    assert 3000 <= state["env_steps"] < 10_000
    assert state["updater"]["steps_since_surgery"] == state["updater"]["version"] - 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--encoder_mlp_layers", "8"], "--inexact true"),
        (["--core", "gru"], "--core_skip true"),
        (["--num_policies", "2"], "num_policies is 2"),
        (["--env_kwargs", '{"num_entries": 3}'], "--inexact true"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(before, words, sentence):
    out = before.path.parent / "refused"
    status, said = surgery(str(before.path), "--out", str(out), *words)
    assert status == 2
    assert sentence in said.splitlines()[-1]
    assert not out.exists()


def test_what_is_lost_is_measured_on_decisions_of_today(before):
    out = before.path.parent / "shown"
    words = ["--env_kwargs", '{"num_choices": 2}', "--inexact", "true", "--dry_run", "true"]
    status, said = surgery(str(before.path), "--out", str(out), *words)
    assert status == 0, said
    dropped = float(re.search(r"choices that are gone had a probability of ([\d.]+)\.\n", said)[1])
    assert dropped == pytest.approx(1 / 3, abs=0.1)  # the third choice is right every third time
    assert not out.exists()
