"""Code of a user in the parent: an environment that is never done, threads that never end, and who waits for them."""

import signal
import subprocess
import sys
import threading

import warm

from sf.run.startup import describing
from sf.run.startup.describing import said_where_slow

STUBBORN = """
import threading, time
import gymnasium as gym

class NeverMade(gym.Env):
    def __init__(self):
        print("making", flush=True)
        for _ in range(10):
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                pass

class LeavesAThread(gym.Env):
    def __init__(self):
        threading.Thread(target=threading.Event().wait).start()
        raise ValueError("it cannot be made")
"""


def start(tmp_path, *arguments):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    return warm.Popen(
        [sys.executable, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_what_is_waited_for_is_said_again_and_again_and_what_is_done_soon_is_not(monkeypatch):
    said, twice = [], threading.Event()

    def show(line):
        said.append(line)
        if len(said) == 2:
            twice.set()

    monkeypatch.setattr(describing, "warn", show)
    with said_where_slow("making Own-v0", after_s=1000.0):
        pass
    assert said == []
    with said_where_slow("making Own-v0", after_s=0.01):
        assert twice.wait(60.0)
    assert all(line.startswith("making Own-v0 has taken 0 s so far; Ctrl-C") for line in said)


def test_ctrl_c_ends_a_run_whose_environment_is_never_made(tmp_path):
    process = start(tmp_path, "-m", "sf", "--env", "stubborn:NeverMade")
    assert process.stdout.readline() == "making\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors == ""


def test_a_thread_of_an_environment_does_not_keep_the_command_from_ending(tmp_path):
    process = start(tmp_path, "-m", "sf", "--env", "stubborn:LeavesAThread", "--gamma", "7")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "gamma is 7.0" in errors
