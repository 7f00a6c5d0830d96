import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import vizdoom
from doom_owner import ENVIRONMENT, OWNER, TIMEOUT_S, engine_pids, shared_files
from waiting import eventually

import sf.envs.doom.game
from sf.envs.doom import engine
from sf.envs.doom.group import make_group
from sf.envs.options import EnvOptions


def test_engines_share_the_core_of_their_owner_not_its_ctrl_c_and_die_with_it_leaving_no_file(tmp_path):
    pipe, command = subprocess.PIPE, [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=tmp_path, env=ENVIRONMENT) as owner:
        instance_ids = owner.stdout.readline().split()
        pids = engine_pids(owner.pid)
        assert len(instance_ids) == len(pids) == 2
        for pid in pids:
            assert os.sched_getaffinity(pid) == os.sched_getaffinity(owner.pid)
            assert len(os.sched_getaffinity(pid)) == 1
            assert os.sched_getscheduler(pid) == os.sched_getscheduler(owner.pid) == os.SCHED_BATCH
            assert os.getsid(pid) == pid != os.getsid(owner.pid)
        pidfds = [os.pidfd_open(pid) for pid in pids]
        assert eventually(lambda: not shared_files(instance_ids))  # gone while the engines run
        owner.kill()
        assert all(select.select([pidfd], [], [], TIMEOUT_S)[0] for pidfd in pidfds)
    assert not shared_files(instance_ids)
    assert not list(tmp_path.iterdir())
    for pidfd in pidfds:
        os.close(pidfd)


def test_an_owner_that_dies_while_an_engine_starts_leaves_nothing(tmp_path):
    # The first of the two that comes so far ends the owner, and with it the other, wherever that one is: a whole
    # file appears at once or not at all.
    fake_engine = tmp_path / "engine"
    written = f"{tmp_path}/$$"
    fake_engine.write_text(
        f'#!/bin/sh\necho "$@" > {written}.part\nmv {written}.part {written}.started\nkill -KILL $PPID\nexec cat\n'
    )
    fake_engine.chmod(0o755)
    owner_code = f"import vizdoom\nvizdoom.exe_path = {str(fake_engine)!r}\n{OWNER}"
    owner = subprocess.run([sys.executable, "-c", owner_code], env=ENVIRONMENT, stdin=subprocess.PIPE, check=False)
    assert owner.returncode == -signal.SIGKILL
    started = list(tmp_path.glob("*.started"))
    assert started
    for path in started:
        words = path.read_text().split()
        instance_id = words[words.index("+viz_instance_id") + 1]
        assert eventually(lambda pid=path.stem: not Path(f"/proc/{pid}").exists())
        assert eventually(lambda id_=instance_id: not shared_files([id_]))


def test_close_ends_the_engines_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(engine_pids(os.getpid()))
    group = make_group("doom_basic", 2, EnvOptions(), seed=1, first_env_idx=0)
    instance_ids = [env._game.get_instance_id() for env in group._games]
    pids = set(engine_pids(os.getpid())) - before
    assert len(pids) == 2
    group.close()
    group.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert eventually(lambda: not shared_files(instance_ids))
    assert not list(tmp_path.iterdir())


def test_when_an_engine_does_not_start_those_beside_it_are_ended(monkeypatch):
    started: list[vizdoom.DoomGame] = []

    allowed = threading.Semaphore(1)

    def start_one(game: vizdoom.DoomGame) -> None:
        if not allowed.acquire(blocking=False):
            raise RuntimeError("no more than one")
        engine.start_engine(game)
        started.append(game)

    monkeypatch.setattr(sf.envs.doom.game, "start_engine", start_one)
    with pytest.raises(RuntimeError, match="no more than one"):
        make_group("doom_basic", 2, EnvOptions(), seed=1, first_env_idx=0)
    assert not started[0].is_running()


class StubbornGame:
    """Stands in for a vizdoom.DoomGame whose engine fails to start a number of times."""

    def __init__(self, num_failures: int) -> None:
        self.num_failures = num_failures
        self.num_attempts = 0

    def init(self) -> None:
        self.num_attempts += 1
        if self.num_attempts <= self.num_failures:
            raise vizdoom.ViZDoomErrorException("no luck")

    def close(self) -> None:
        pass

    def set_doom_config_path(self, path: str) -> None:
        pass

    def set_vizdoom_path(self, path: str) -> None:
        pass


def test_an_engine_that_does_not_start_is_tried_three_times():
    game = StubbornGame(num_failures=2)
    engine.start_engine(game)
    assert game.num_attempts == 3
    game = StubbornGame(num_failures=99)
    with pytest.raises(RuntimeError, match="no luck"):
        engine.start_engine(game)
    assert game.num_attempts == engine.MAX_ATTEMPTS


def test_a_full_shared_memory_is_reported_before_it_crashes_an_engine(monkeypatch):
    full = list(os.statvfs("/dev/shm"))
    full[4] = 0  # f_bavail
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(full))
    with pytest.raises(RuntimeError, match="/dev/shm has 0 KiB left"):
        engine.start_engine(StubbornGame(num_failures=0))
