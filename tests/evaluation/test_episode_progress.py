"""What is said of an evaluation while it goes on."""

from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from sf.evaluation import endless, task
from sf.evaluation.results import Evaluation
from sf.tools.commands import cli


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [1000.0]
    monkeypatch.setattr(endless.time, "monotonic", lambda: now[0])
    return now


def test_an_evaluation_whose_episodes_have_no_end_says_so_once(clock, capsys):
    progress = cli.EpisodeProgress()
    for seconds, is_said in ((0, False), (59, False), (60, True), (65, False), (500, False)):
        clock[0] = 1000.0 + seconds
        progress(0, 100)
        said = capsys.readouterr()
        assert said.out == ""
        assert ("no episode has ended in 60 s" in said.err) == is_said
    for done in (1, 2, 2):  # one that has episodes says nothing beside a terminal
        clock[0] += 500
        progress(done, 100)
    assert capsys.readouterr() == ("", "")


def test_progress_is_told_without_news(monkeypatch):
    class EnoughError(Exception):
        pass

    told = []

    def on_progress():
        told.append(1)
        if len(told) == 3:
            raise EnoughError

    monkeypatch.setattr(task, "_NEWS_EVERY_S", 0.01)
    ours, theirs = Pipe()
    silent = SimpleNamespace(connection=ours, receive=list)
    with ours, theirs, pytest.raises(EnoughError):
        task._collect([silent], Evaluation("true_objective"), on_progress)
