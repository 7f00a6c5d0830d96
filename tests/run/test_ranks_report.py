"""What a rank tells the others of itself, and what the first makes of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sf.metrics.progress import Outlook
from sf.ranks.board import Board
from sf.ranks.place import Place
from sf.run.ranks_report import RanksReport
from sf.system.arrays import Field, SharedArrays

FIRST, SECOND = Place(0, 2, 0, 2), Place(1, 2, 1, 2)


class ClaimedBoard(Board):
    """Whose other lines are only claimed."""

    def __init__(self, **others):
        self.own = {}
        self._others = {int(name[1:]): line for name, line in others.items()}

    def post(self, **words):
        self.own.update(words)

    def lines(self):
        return self._others

    def host(self, rank):
        return f"node-{rank}"


def record(**fields):
    return {"mean_return": None, "episodes_in_mean": 0, "episodes": 3, **fields}


def test_the_record_of_the_run_has_the_episodes_of_all_ranks_and_names_the_slowest():
    report = RanksReport(FIRST, ClaimedBoard(r1={"record": record(episodes=4)}))
    assert report.of_all(record()) == record(episodes=7)  # nobody has waited yet
    report.note_waits(0, [0.5, 0.1])
    waits = {"ranks/slowest": 1, "ranks/wait_share": 0.5, "ranks/slowest_wait_share": 0.1}
    assert report.of_all(record()) == {**record(episodes=7), **waits}


def test_the_waits_of_several_policies_are_taken_together():
    report = RanksReport(FIRST, ClaimedBoard())
    report.note_waits(0, [0.5, 0.1])
    report.note_waits(1, [0.2, 0.8])
    assert report.of_all(record())["ranks/slowest"] == 0
    assert report.of_all(record())["ranks/slowest_wait_share"] == pytest.approx(0.35)


def test_the_display_tells_what_all_have_sampled():
    report = RanksReport(FIRST, ClaimedBoard(r1={"sampled_frames_per_second": 300.0}))
    assert report.outlook_of_all(Outlook(load=None, sampled_frames_per_second=200.0)).sampled_frames_per_second == 500.0


def test_another_rank_than_the_first_tells_of_itself_alone():
    board = ClaimedBoard(r0={"record": record(episodes=4)})
    report = RanksReport(SECOND, board)
    outlook = Outlook(load=None, sampled_frames_per_second=200.0)
    report.tell(record(), outlook)
    assert board.own["record"] == record()
    assert board.own["sampled_frames_per_second"] == 200.0
    assert report.of_all(record()) == record()
    assert report.outlook_of_all(outlook) == outlook
    assert report.summary_of_all(record(), has_failed=False) == record()
    assert board.own["summary"] == record()


def test_rewards_are_shaped_on_all_ranks_as_the_first_says():
    boards, weights = ClaimedBoard(), [[1.0, 2.0], [3.0, 4.0]]
    shapings = [SharedArrays([Field("weights", (2, 2), np.float32)]) for _ in range(2)]
    shapings[0]["weights"][:] = weights
    RanksReport(FIRST, boards, shaping=shapings[0]).tell(record(), Outlook(load=None))
    other = RanksReport(SECOND, ClaimedBoard(r0=boards.own), shaping=shapings[1])
    other.tell(record(), Outlook(load=None))
    assert shapings[1]["weights"].tolist() == weights


def test_a_rank_that_ends_with_another_waits_for_a_signal_of_its_own(monkeypatch):
    waited = []
    monkeypatch.setattr("sf.run.ranks_report.connection.wait", lambda ready, seconds: waited.append(ready))
    RanksReport(FIRST, ClaimedBoard()).wait_for_own_signal(SimpleNamespace(wakeup="the pipe"))
    assert waited == [["the pipe"]]


def test_learners_that_all_wait_for_each_other_are_found(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("sf.run.ranks_report.time.monotonic", lambda: now[0])
    line = {"learners": [[True, 7.0]]}
    report = RanksReport(FIRST, ClaimedBoard(r1=line), hangs_after_s=20.0)
    for own in ((True, 3.0), (True, 4.0)):  # the first goes on once more
        now[0] += 15.0
        assert report.why_lost([own]) is None
    now[0] += 15.0
    assert report.why_lost([(True, 4.0)]) is None
    now[0] += 15.0
    assert "the learners of all ranks wait for each other for 20 s" in report.why_lost([(True, 4.0)])


def test_a_rank_that_is_at_work_is_waited_for(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("sf.run.ranks_report.time.monotonic", lambda: now[0])
    report = RanksReport(FIRST, ClaimedBoard(r1={"learners": [[False, 7.0]]}), hangs_after_s=20.0)
    for _ in range(5):
        now[0] += 15.0
        assert report.why_lost([(True, 4.0)]) is None
    assert RanksReport(Place(), ClaimedBoard(), hangs_after_s=0.0).why_lost([(True, 4.0)]) is None
