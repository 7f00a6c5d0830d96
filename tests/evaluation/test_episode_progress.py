"""What is said of an evaluation while it goes on."""

import pytest

from sf import envs
from sf.envs import EnvOptions
from sf.evaluation import endless, task
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.task import EvaluationTask, evaluate
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
        assert ("no episode has ended in 60 s: if they have no end" in said.err) == is_said


def test_one_that_has_episodes_says_nothing_beside_a_terminal(clock, capsys):
    progress = cli.EpisodeProgress()
    for seconds, done in ((0, 0), (59, 1), (500, 2), (900, 2)):
        clock[0] = 1000.0 + seconds
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
    assert "no episode has ended in 60 s" in sentence
    assert "give the environment a limit of steps" in sentence


def test_progress_is_told_without_news(monkeypatch):
    class EnoughError(Exception):
        pass

    told = []

    def on_progress(done, total):
        told.append((done, total))
        if len(told) == 6:
            raise EnoughError

    monkeypatch.setattr(task, "_NEWS_EVERY_S", 0.02)  # a worker takes longer to start
    spec = envs.describe("toy_bandit", EnvOptions())
    player = Opponent("random", "toy_bandit", EnvOptions(), spec.obs_space, spec.action_space)
    playing = EvaluationTask("toy_bandit", EnvOptions(), {"random": player}, num_episodes=3, num_workers=1)
    with pytest.raises(EnoughError):
        evaluate(playing, on_progress)
    assert told == [(0, 3)] * 6
