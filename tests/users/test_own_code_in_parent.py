"""Code of a user in the parent: an environment that is never done, threads that never end, and who waits for them."""

import signal
import subprocess
import sys

import warm

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
