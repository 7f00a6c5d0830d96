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
    started, folders = [], []

    def launch_once(num_ranks, launch_id, logs):
        started.append(Place(0, num_ranks, 0, num_ranks).is_started_again)
        folders.append(os.environ[SAID_ONCE])
        return statuses[len(started) - 1]

    monkeypatch.setattr(launcher, "_launch_once", launch_once)
    budget = iter([True] * num_restarts + [False])
    status = launcher.launch(2, lambda: next(budget))
    assert len({*folders}) == len(folders)  # each start says its sentences anew
    return status, started


@pytest.mark.parametrize(
    ("statuses", "num_restarts", "expected"),
    [
        ([1, 137, 0], 5, (0, [False, True, True])),
        ([1, 1, 1], 2, (1, [False, True, True])),
        *(([status], 5, (status, [False])) for status in (0, 2, 130, 143)),  # as asked for, or by a user's mistake
        ([FINAL_FAILURE], 5, (1, [False])),
    ],
)
def test_ranks_that_fail_are_started_again_and_know_it(monkeypatch, statuses, num_restarts, expected):
    os.environ.pop(STARTED_AGAIN, None)
    with open("/dev/full", "wb", buffering=0) as full:  # also where nobody reads that
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(full, write_through=True))
        assert launched(monkeypatch, statuses, num_restarts) == expected


def test_what_all_ranks_would_say_is_said_once(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(SAID_ONCE, str(tmp_path))
    for message in ("num_workers is 0: at least 1", "num_workers is 0: at least 1", "another"):
        with pytest.raises(SystemExit) as ended:
            ends.fail(message)
        assert ended.value.code == 2
    assert capsys.readouterr().err == "error: num_workers is 0: at least 1\nerror: another\n"


@pytest.mark.skipif(not hasattr(launcher.LaunchConfig, "signals_to_handle"), reason="this PyTorch has no choice")
def test_where_nohup_has_set_the_hangup_to_be_ignored_no_rank_is_ended_by_it(monkeypatch, tmp_path):
    hang_up = "import os, signal, sys, time; os.kill(os.getppid(), signal.SIGHUP); time.sleep(0.5); sys.exit(2)"
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", hang_up])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert launcher.launch(1, lambda: False) == 2
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not list(tmp_path.iterdir())  # no folder of empty logs


def test_more_ranks_than_memory_holds_are_refused_before_any_starts():
    launcher.require_memory(8, free=8 * 300 * 2**20)
    launcher.require_memory(1, free=0)  # it is for the run to say what it needs
    with pytest.raises(UsageError, match=r"num_learners is 1,000,000: .*13"):
        launcher.require_memory(1_000_000, free=4 * 2**30)
