"""How the ranks of this machine are started, and started again."""

from __future__ import annotations

import io
import os
import signal

import pytest

from sf.ranks import launcher
from sf.ranks.agent import SAID_ONCE
from sf.ranks.place import FINAL_FAILURE, STARTED_AGAIN, Place

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
