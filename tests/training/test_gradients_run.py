"""Runs whose learner has gradient workers are repeatable; what becomes of these is in test_supervision.py."""

import numpy as np
import pytest
from runs import train_here
from safetensors.numpy import load_file

# In synchronous mode the parts are fixed, so that there is work for them from the first step on.
FLAGS = ["--async_rl", "false", "--batch_size", "32", "--core", "gru", "--rnn_size", "8"]


def weights(run):
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[-1])


def test_two_runs_with_as_many_gradient_workers_are_equal_to_the_bit(tmp_path):
    for name in "ab":
        summary = train_here(
            tmp_path, *FLAGS, "--experiment", name, "--gradient_workers", "2", "--train_for_env_steps", "320"
        )
        assert summary["train/gradient_share"] == pytest.approx(2 / 3)
    a, b = (weights(tmp_path / name) for name in "ab")
    assert a.keys() == b.keys()
    assert all(np.array_equal(a[key], b[key]) for key in a)
