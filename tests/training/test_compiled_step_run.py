"""A run whose learner compiles its step beside itself: it takes it, hands it on, and leaves nothing behind."""

import os
import signal
import time
from pathlib import Path

import pytest
import slow_env
from faults import processes
from runs import DEVICE, start

from sf.system.native import kernels

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(580),
    pytest.mark.skipif(kernels.why_not() is not None, reason="this machine has no C++ compiler"),
    pytest.mark.skipif(DEVICE != "cpu", reason="on a GPU there is no such program"),
]

FLAGS = ["--shuffle_steps", "true", "--num_batches_per_epoch", "2", "--num_epochs", "2"]
FLAGS += ["--encoder", "soon_compiled:Encoder"]
TAKEN = "the learner's step is compiled from here on"
NO_FASTER = "a program takes no less time"  # by three steps each, which other programs on this machine may have held up


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(slow_env.__file__).parent))


def start_slow(tmp_path, *flags):
    return start(tmp_path, *FLAGS, *flags, env="slow_env:Slow")


def wait_for(run, words):
    return next(line for line in run.stdout if words in line)


def wait_until_taken(run):
    """By one of three learners."""
    for _ in range(3):
        if TAKEN in next(line for line in run.stdout if TAKEN in line or NO_FASTER in line):
            return
        os.kill(learner_of(run), signal.SIGKILL)
    pytest.fail("no program was faster")


def learner_of(run):
    return next(process.pid for process in processes.below(run.pid) if process.name == "learner-0")


def interrupt(run):
    alive = processes.alive_below(run.pid)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130, output
    assert processes.wait_until_gone(alive, timeout_s=10.0) == set()


def wait_until_one_is_made(cache):
    """The folders of what is made."""
    ends = time.monotonic() + 200.0
    while not (making := set(cache.glob("making-*"))):
        assert time.monotonic() < ends
        time.sleep(0.1)
    return making


def test_a_run_takes_its_program_and_so_do_the_next_run_and_its_learners_and_none_leaves_anything_behind(tmp_path):
    run = start_slow(tmp_path)
    cache = tmp_path / "cache" / "sf"
    first = wait_until_one_is_made(cache)
    os.kill(learner_of(run), signal.SIGKILL)
    wait_for(run, "Replaced")
    while first & wait_until_one_is_made(cache):  # the next one to make a program removes what the first has left
        time.sleep(0.1)
    wait_until_taken(run)
    wait_until_one_is_made(cache)  # for the policy worker
    interrupt(run)
    assert not list(cache.glob("making-*"))
    assert len(list(cache.glob("program-*.so"))) == 1
    again = start_slow(tmp_path, "--experiment", "again")  # its first iteration comes before its first record
    if NO_FASTER in (tmp_path / "again" / "run.log").read_text():
        wait_until_taken(again)
    assert TAKEN in (tmp_path / "again" / "run.log").read_text()
    os.kill(learner_of(again), signal.SIGKILL)
    wait_for(again, "Replaced")
    wait_until_taken(again)
    interrupt(again)
