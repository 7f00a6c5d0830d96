"""The algorithm in one file, docs/examples/tiny_appo.py, with its real processes."""

import os
import re
import signal
import subprocess
import sys

import pytest
from faults import processes
from pages import ROOT

SCRIPT = ROOT / "docs" / "examples" / "tiny_appo.py"
RANDOM_RETURN = 22  # of an untrained policy


def start(*flags):
    command = [sys.executable, str(SCRIPT), *flags]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


@pytest.mark.long
def test_it_learns_cartpole():
    said, errors = start("--env_steps", "60000").communicate(timeout=220)
    assert errors == ""
    mean_return = re.search(r"^seed 0: mean return ([\d.]+) after 60,\d+ env steps", said, re.MULTILINE)
    assert mean_return is not None, said
    assert float(mean_return[1]) > 8 * RANDOM_RETURN


@pytest.mark.long
@pytest.mark.parametrize(("kill", "signum", "status"), [(os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGKILL, -9)])
def test_no_process_outlives_ctrl_c_or_the_death_of_the_parent(kill, signum, status):
    """A terminal sends Ctrl-C to the whole group."""
    process = start("--env_steps", "2000000")
    assert "mean return" in process.stdout.readline()
    pids = processes.alive_below(process.pid)
    assert len(pids) >= 4
    kill(process.pid, signum)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (status, "")
    assert processes.wait_until_gone(pids, timeout_s=30.0) == set()
