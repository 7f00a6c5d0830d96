"""One run a directory, whatever becomes of the directory and of the process that runs there."""

import errno
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from sf.config import Config
from sf.run.trainer import train
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir
from sf.storage.run_lock import held

# Takes the lock of argv[1], starts children of both kinds, and says so once the children live. They, and the process
# itself, end when the pipe argv[2] does.
HOLDER = """
import multiprocessing, os, sys
from pathlib import Path
from sf.storage.run_lock import held

def wait_for_the_end(fifo, connection):
    with open(fifo) as end:
        connection.send_bytes(b"")
        end.read()

if __name__ == "__main__":
    with held(Path(sys.argv[1])), open(sys.argv[2]) as end:
        pids = []
        for method in sys.argv[3:]:
            context = multiprocessing.get_context(method)
            ours, theirs = context.Pipe()
            child = context.Process(target=wait_for_the_end, args=(sys.argv[2], theirs), daemon=True)
            child.start()
            ours.recv_bytes()
            pids.append(child.pid)
        print(*pids, flush=True)
        end.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Starts a process that holds the lock of a directory; returns it and the pids of its children."""
    script, fifo = tmp_path / "holder.py", tmp_path / "fifo"
    script.write_text(HOLDER)
    os.mkfifo(fifo)
    end = os.open(fifo, os.O_RDWR)  # so that opening it blocks nobody
    processes = []

    def start(directory, *methods):
        process = subprocess.Popen(
            [sys.executable, script, directory, fifo, *methods], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process, [int(pid) for pid in process.stdout.readline().split()]

    yield start
    os.close(end)
    for process in processes:
        process.communicate()  # ends when the children, too, have closed their end


@contextmanager
def refused(match):
    with pytest.raises(ValueError, match=match):
        yield


def is_free(directory):
    try:
        with held(directory):
            return True
    except ValueError:
        return False


def test_a_second_run_is_told_which_process_has_the_directory(tmp_path, holder):
    (tmp_path / ".run.lock").write_text("process 123456789 on " + 50 * "a")  # of an earlier one, and longer
    process, _ = holder(tmp_path / "run")
    with refused(f"^process {process.pid} on {socket.gethostname()} is running.*--experiment"), held(tmp_path / "run"):
        pass
    assert is_free(tmp_path / "other")
    with pytest.raises(KeyError), held(tmp_path / "other"):
        raise KeyError
    assert is_free(tmp_path / "other")


def test_a_run_that_was_killed_leaves_the_directory_free_though_a_child_is_alive(tmp_path, holder):
    process, children = holder(tmp_path / "run", "spawn", "forkserver")
    assert len(children) == 2
    assert not is_free(tmp_path / "run")
    process.kill()
    process.wait()
    for pid in children:
        os.kill(pid, 0)
    assert is_free(tmp_path / "run")


@pytest.mark.parametrize("restart_behavior", ["restart", "overwrite"])
def test_the_lock_holds_while_the_directory_is_moved_or_removed(tmp_path, restart_behavior):
    run_dir = RunDir.at(str(tmp_path), "toy_bandit")
    with run_dir.locked():
        run_dir.prepare(Config().replace(env="toy_bandit"))
        run_dir.prepare(Config().replace(env="toy_bandit", restart_behavior=restart_behavior))
        assert not is_free(run_dir.path)
        shutil.rmtree(run_dir.path)
        assert not is_free(run_dir.path)


def test_a_lock_that_is_removed_with_its_directory_is_taken_again(tmp_path):
    directory = tmp_path / "runs" / "run"
    with held(directory) as lock:
        for _ in range(2):
            shutil.rmtree(tmp_path / "runs")
            assert is_free(directory)
            shutil.rmtree(tmp_path / "runs")
            (tmp_path / "runs").touch()
            lock.renew()  # it cannot be made again yet
            (tmp_path / "runs").unlink()
            lock.renew()
            assert not is_free(directory)
        first = (tmp_path / "runs" / ".run.lock").stat().st_ino
        lock.renew()
        assert (tmp_path / "runs" / ".run.lock").stat().st_ino == first
    assert is_free(directory)


def test_a_run_ends_and_saves_nothing_where_another_one_has_its_directory(tmp_path, holder):
    run_dir, started = RunDir.at(str(tmp_path / "runs"), "toy_identity"), []

    def start_another(record):
        if record["env_steps"] == 0:  # an end before a run is under way puts back what was there
            return
        assert not started, "the run has gone on"
        shutil.rmtree(tmp_path / "runs")
        started.append(holder(run_dir.path)[0])

    with refused("was removed with its lock, and process .* is running there now"):
        train(settings(tmp_path / "runs", summaries_every_sec=0.1), start_another)
    assert started
    assert not run_dir.summary.exists()
    assert not list(run_dir.path.rglob("*.safetensors"))


def test_a_directory_has_one_lock_under_all_its_names(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    with held(tmp_path / "link"):
        assert not is_free(tmp_path / "run")
        assert not is_free(tmp_path / "link" / ".." / "run")


def test_a_file_system_without_locks_is_said_and_used(tmp_path, monkeypatch, said):
    def flock(_fd, _how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with held(tmp_path / "run"):
        pass
    assert len(said) == 1
    assert "no second run" in said[0]


def test_places_that_cannot_hold_a_run_are_refused(tmp_path):
    (tmp_path / "toy_identity").symlink_to("toy_identity")
    with refused("cannot hold a run"):  # links lead in a circle
        train(settings(tmp_path))
    (tmp_path / "file").write_text("")
    with refused("--train_dir"), held(tmp_path / "file" / "run"):
        pass


def settings(tmp_path, **flags):
    of_run = {"env": "toy_identity", "train_dir": str(tmp_path), "num_workers": 1, "device": "cpu"}
    return Config().replace(**of_run, train_for_seconds=600.0, **flags)


@pytest.mark.parametrize("restart_behavior", ["resume", "overwrite"])
def test_training_where_another_run_is_touches_nothing(tmp_path, restart_behavior):
    run_dir = RunDir.at(str(tmp_path), "toy_identity")
    run_dir.prepare(settings(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with run_dir.locked(), refused("is running in"):
        train(settings(tmp_path, restart_behavior=restart_behavior))
    assert sorted(p for p in tmp_path.rglob("*") if p.suffix != ".lock") == before


def test_training_never_begins_anew_in_the_place_of_checkpoints_that_are_broken(tmp_path):
    run_dir = RunDir.at(str(tmp_path), "toy_identity")
    run_dir.prepare(settings(tmp_path))
    path = checkpoint.save(run_dir.checkpoints, Checkpoint({}, {}), 640, keep=2)
    path.write_bytes(path.read_bytes()[:-1])
    with refused("checksum.*restart_behavior restart"):
        train(settings(tmp_path))
    assert list(run_dir.checkpoints.iterdir()) == [path]
