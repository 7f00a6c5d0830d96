"""How the ranks of this machine are started, and started again."""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile

import pytest

from sf.envs.errors import UsageError
from sf.ranks import launcher
from sf.ranks.agent import SAID_ONCE
from sf.ranks.place import FINAL_FAILURE, STARTED_AGAIN, Place
from sf.tools.commands import ends

TAKEN_BY_TORCH = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # in the process that launches


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(launcher.logging, "disable", lambda level: None)
    handlers = {signum: signal.getsignal(signum) for signum in TAKEN_BY_TORCH}
    yield
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


def launched(monkeypatch, statuses, num_restarts):
    """The status of all, and how many starts there were, where each start ends with the next of `statuses`."""
    started = []

    def launch_once(num_ranks, launch_id, logs):
        started.append(Place(0, num_ranks, 0, num_ranks).is_started_again)
        return statuses[len(started) - 1]

    monkeypatch.setattr(launcher, "_launch_once", launch_once)
    budget = iter([True] * num_restarts + [False])
    return launcher.launch(2, lambda: next(budget)), started


def test_ranks_that_fail_are_started_again_and_know_it(monkeypatch):
    os.environ.pop(STARTED_AGAIN, None)
    assert launched(monkeypatch, [1, 137, 0], num_restarts=5) == (0, [False, True, True])


def test_ranks_that_fail_are_started_again_though_nobody_reads_it(monkeypatch):
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(full, write_through=True))
        assert launched(monkeypatch, [1, 0], num_restarts=5) == (0, [False, True])


def test_ranks_that_fail_again_and_again_are_given_up(monkeypatch):
    status, starts = launched(monkeypatch, [1, 1, 1], num_restarts=2)
    assert (status, len(starts)) == (1, 3)


@pytest.mark.parametrize("status", [0, 2, 130, 143])
def test_an_end_that_was_asked_for_and_a_mistake_of_the_user_start_nothing(monkeypatch, status):
    ended, starts = launched(monkeypatch, [status], num_restarts=5)
    assert (ended, len(starts)) == (status, 1)


def test_a_failure_that_would_come_again_starts_nothing(monkeypatch):
    assert launched(monkeypatch, [FINAL_FAILURE], num_restarts=5) == (1, [False])


def test_what_all_ranks_would_say_is_said_once(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(SAID_ONCE, str(tmp_path))
    for message in ("num_workers is 0: at least 1", "num_workers is 0: at least 1", "another"):
        with pytest.raises(SystemExit) as ended:
            ends.fail(message)
        assert ended.value.code == 2
    assert capsys.readouterr().err == "error: num_workers is 0: at least 1\nerror: another\n"


def test_each_start_says_it_anew(monkeypatch, tmp_path):
    folders = []
    monkeypatch.setattr(launcher, "_launch_once", lambda *args: folders.append(os.environ[SAID_ONCE]) or 1)
    budget = iter([True, False])
    launcher.launch(2, lambda: next(budget))
    assert len({*folders}) == 2


def test_a_launch_leaves_no_folder_of_empty_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", "import sys; sys.exit(2)"])
    assert launcher.launch(1, lambda: False) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(launcher.LaunchConfig, "signals_to_handle"), reason="this PyTorch has no choice")
def test_where_nohup_has_set_the_hangup_to_be_ignored_no_rank_is_ended_by_it(monkeypatch):
    hang_up = "import os, signal, time; os.kill(os.getppid(), signal.SIGHUP); time.sleep(0.5)"
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", hang_up])
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert launcher.launch(1, lambda: False) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_more_ranks_than_memory_holds_are_refused_before_any_starts():
    launcher.require_memory(8, free=8 * 300 * 2**20)
    launcher.require_memory(1, free=0)  # it is for the run to say what it needs
    with pytest.raises(UsageError, match=r"num_learners is 1,000,000: .* take 13 at most"):
        launcher.require_memory(1_000_000, free=4 * 2**30)
