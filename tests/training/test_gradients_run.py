"""Runs whose learner has gradient workers: repeatable, and none the worse for the death of one."""

import os
import signal
import time

import numpy as np
import pytest
from faults import processes
from runs import start, train_here
from safetensors.numpy import load_file

# In synchronous mode the parts are fixed, so that there is work for them from the first step on.
FLAGS = ["--async_rl", "false", "--batch_size", "32", "--core", "gru", "--rnn_size", "8"]


def weights(run):
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[-1])


@pytest.mark.long
def test_two_runs_with_as_many_gradient_workers_are_equal_to_the_bit(tmp_path):
    for name in "ab":
        summary = train_here(
            tmp_path, *FLAGS, "--experiment", name, "--gradient_workers", "2", "--train_for_env_steps", "640"
        )
        assert summary["train/gradient_share"] == pytest.approx(2 / 3)
    a, b = (weights(tmp_path / name) for name in "ab")
    assert a.keys() == b.keys()
    assert all(np.array_equal(a[key], b[key]) for key in a)


def test_a_run_whose_gradient_worker_is_killed_goes_on_and_leaves_nothing_behind(tmp_path):
    run = start(tmp_path, *FLAGS, "--gradient_workers", "2")
    by_name = {process.name: process for process in processes.below(run.pid)}
    victim = by_name["gradients-0-0"]
    assert victim.parent == by_name["learner-0"].pid == by_name["gradients-0-1"].parent
    os.kill(victim.pid, signal.SIGKILL)
    said = next(line for line in run.stdout if "gradient worker" in line)
    assert "a gradient worker died: the learner did its part, and has started a new one" in said
    assert next(line for line in run.stdout if "frames" in line)

    def pids():
        return {process.name: process.pid for process in processes.below(run.pid) if not process.is_zombie}

    while pids().get("gradients-0-0", victim.pid) == victim.pid:  # a new process has its creator's name for a moment
        time.sleep(0.02)
    alive, again = processes.alive_below(run.pid), pids()
    assert again["learner-0"] == by_name["learner-0"].pid
    assert again["gradients-0-0"] != victim.pid
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=30)
    assert run.returncode == 130, output
    assert processes.wait_until_gone(alive, timeout_s=10.0) == set()
