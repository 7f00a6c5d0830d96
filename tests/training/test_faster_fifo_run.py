"""Runs with `--queues faster_fifo`: which deaths they outlive, and how they end at the others."""

import os
import signal
from contextlib import suppress
from random import Random

import pytest
import warm
from faults import processes
from faults.catalog import FAULTS
from faults.session import Session
from faults.tasks import flags
from faults.watch import EndedError

from sf.storage import checkpoint

FAULT = {fault.name: fault for fault in FAULTS}
MANY = 30  # deaths, one of which at least is inside of a queue


@pytest.fixture
def run(tmp_path):
    with warm.everywhere():
        session = Session(flags("toy", tmp_path, queues="faster_fifo"), tmp_path / "log")
    pids = processes.alive_below(session.pid)
    yield session
    session.kill()
    assert processes.wait_until_gone(pids, timeout_s=30.0) == set()


def test_a_process_that_an_environment_kills_is_replaced_and_training_goes_on(run):
    FAULT["environment kills its process"].do(run, Random(0))
    run.wait_for_progress()
    assert "died of SIGKILL. Replaced" in run.output()


@pytest.mark.parametrize("name", ["rollout-0", pytest.param("policy-0", marks=pytest.mark.long), "learner-0"])
def test_a_process_that_is_killed_inside_of_a_queue_ends_the_run_which_saves(run, name):
    with suppress(EndedError):
        pid = None
        for _ in range(MANY):
            pid = run.wait_for_pid(name, other_than=pid)
            with suppress(ProcessLookupError):  # the run ends, and took it along
                os.kill(pid, signal.SIGKILL)
    assert run.wait_for_end() == 1
    assert f"{name} died inside of a queue, which may be locked for ever" in run.output()
    assert "--queues pipes" in run.output()
    assert checkpoint.load(run.checkpoints()[-1]).state["env_steps"] > 0
