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


def test_on_a_terminal_the_last_line_of_each_evaluation_is_written_once(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = cli.EpisodeProgress()
    for done in (0, 2, 2, 0, 2):
        progress(done, 2)
    assert capsys.readouterr().err == "\r0 of 2 episodes\r2 of 2 episodes\n" * 2


def test_of_several_evaluations_in_turn_each_has_its_minute(clock):
    said = []
    watch = endless.EndlessWatch(said.append, endless.OF_SEVERAL_AGENTS)
    for seconds, done in ((0, 0), (59, 4), (59, 0), (118, 0)):
        clock[0] = 1000.0 + seconds
        watch(done, 4)
    assert said == []
    clock[0] = 1119.0
    watch(0, 4)
    [sentence] = said
    assert endless.OF_SEVERAL_AGENTS in sentence


def test_where_the_longest_episode_is_known_nobody_is_told_to_give_one(clock):
    said = []
    watch = endless.EndlessWatch(said.append, time_limit=lambda: 4200)
    for seconds in (0, 60):
        clock[0] = 1000.0 + seconds
        watch(0, 4)
    [sentence] = said
    assert "4,200 steps" in sentence
    assert "TimeLimit" not in sentence


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
