"""Schedules in whole runs: what they say, what decides by them, and how they go on."""

import json

import numpy as np
import pytest
from runs import train_here

from sf.storage.checkpoint import load_latest

SYNC = ["--async_rl", "false", "--num_workers", "2", "--num_envs_per_worker", "4", "--batch_size", "64"]


def records(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_synchronous_run_that_was_stopped_and_resumed_equals_one_that_was_not_to_the_bit(tmp_path):
    """With schedules by steps and by a metric: a bandit pays from 0 to 1."""
    lines = ["gamma=0.5:0.9@1000", "ppo_clip_ratio=0.3:0.1@mean_return:0.1", "learning_rate=0.01:0.001@1200"]
    flags = [*SYNC, "--stats_avg", "100", "--num_epochs", "2", "--num_batches_per_epoch", "2", "--anneal", *lines]
    train_here(tmp_path, *flags, "--experiment", "at_once", "--train_for_env_steps", "1280", env="toy_bandit")
    for steps in ("448", "1280"):
        train_here(tmp_path, *flags, "--experiment", "in_parts", "--train_for_env_steps", steps, env="toy_bandit")
    (_, at_once), (_, in_parts) = (load_latest(tmp_path / name / "checkpoints") for name in ("at_once", "in_parts"))
    different = [key for key in at_once.tensors if not np.array_equal(at_once.tensors[key], in_parts.tensors[key])]
    assert different == []
    assert at_once.state["annealing"] == in_parts.state["annealing"]
    assert at_once.state["annealing"]["ppo_clip_ratio"]["moves"] > 2
    last = records(tmp_path / "in_parts")[-1]
    assert last["train/annealed/gamma"] == pytest.approx(0.9)
    assert last["train/learning_rate"] == pytest.approx(0.01 - 0.009 * 1152 / 1200)  # of the last iteration


def test_nothing_is_decided_before_an_option_has_its_last_value_which_evaluations_take(tmp_path):
    """An episode pays its size, so early ones pay less than any later one, or more."""
    flags = ["--anneal", "env.size=9:2@8000", "env.wind=0.25..0.5", "--stats_avg", "10", "--stop_at_return", "1.5"]
    flags += ["--train_for_env_steps", "1000000", "--eval_every_env_steps", "4000", "--save_every_sec", "0.2"]
    summary = train_here(tmp_path, *flags, env="sized_env:Sized")
    run = tmp_path / "sized_env_Sized"
    assert summary["stopped_by"] == "stop_at_return"
    assert 8_000 <= summary["env_steps"] < 1_000_000
    assert summary["stats/size"] == pytest.approx(2.0)
    found = records(run)
    sizes = [record["train/annealed/env.size"] for record in found if "train/annealed/env.size" in record]
    assert sizes == sorted(sizes, reverse=True)
    assert 2.0 <= sizes[-1] < 9.0  # a learner reports once a second, and the run may end before it does
    evaluated = [record["eval/mean_return"] for record in found if "eval/mean_return" in record]
    assert evaluated
    assert set(evaluated) == {2.0}
