"""Runs whose learner compiles its step beside itself: they take it, hand it on, and leave nothing behind."""

import os
import signal
import time

import pytest
from faults import processes
from runs import start

from sf.native import kernels

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(580),
    pytest.mark.skipif(kernels.why_not() is not None, reason="this machine has no C++ compiler"),
    pytest.mark.skipif(os.environ.get("SF_TEST_DEVICE", "cpu") != "cpu", reason="a GPU has no such program"),
]

FLAGS = ["--shuffle_steps", "true", "--num_batches_per_epoch", "2", "--num_epochs", "2", "--share_critic", "false"]
TAKEN = "the learner's step is compiled from here on"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def wait_for(run, words):
    return next(line for line in run.stdout if words in line)


def interrupt(run):
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130, output
    assert processes.wait_until_gone(processes.alive_below(run.pid), timeout_s=10.0) == set()


def test_a_run_takes_its_program_and_so_do_its_next_learner_and_the_next_run(tmp_path):
    run = start(tmp_path, *FLAGS)
    wait_for(run, TAKEN)
    learner = next(process for process in processes.below(run.pid) if process.name == "learner-0")
    os.kill(learner.pid, signal.SIGKILL)
    wait_for(run, "replaced")
    wait_for(run, TAKEN)
    interrupt(run)
    again = start(tmp_path, *FLAGS, "--experiment", "again")
    started = time.monotonic()
    wait_for(again, TAKEN)
    assert time.monotonic() - started < 30.0  # nothing is made before
    interrupt(again)


def test_a_run_that_ends_while_its_program_is_made_leaves_nothing_behind(tmp_path):
    run = start(tmp_path, *FLAGS)
    ends = time.monotonic() + 200.0
    while not (making := list((tmp_path / "cache" / "sf").glob("making-*"))):
        assert time.monotonic() < ends
        time.sleep(0.2)
    alive = processes.alive_below(run.pid)
    interrupt(run)
    assert processes.wait_until_gone(alive, timeout_s=10.0) == set()
    assert not any(folder.exists() for folder in making)
