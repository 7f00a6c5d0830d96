"""What the trainers of a run tell each other, and whom they miss."""

from __future__ import annotations

import threading

import pytest
import torch.distributed

from sf.ranks import board as board_module
from sf.ranks.board import StoreBoard
from sf.ranks.place import FAILURE, FINAL_FAILURE, USER_ERROR, Place

SIZE = 2


@pytest.fixture
def clock(monkeypatch):
    """Time as the boards see it; it stands still unless it is set. Their threads exchange lines without a pause."""
    now = [0.0]
    monkeypatch.setattr(board_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(board_module, "_WRITES_EVERY_S", 0.001)
    return now


@pytest.fixture
def boards(tmp_path, clock):
    store = torch.distributed.FileStore(str(tmp_path / "store"), -1)
    made = [StoreBoard(store, Place(rank, SIZE), timeout_s=10.0) for rank in range(SIZE)]
    yield made
    for board in made:
        board.close()


def until(condition):
    pause = threading.Event()
    while not condition():
        pause.wait(0.001)


def test_each_rank_reads_the_latest_line_of_the_others(boards):
    for word in ("first", "second"):
        boards[0].post(word=word)
        until(lambda word=word: boards[1].lines().get(0, {}).get("word") == word)
    assert boards[1].lines().keys() == {0}
    assert boards[1].host(0) == boards[0].host(0)
    assert [board.silence() for board in boards] == [None, None]


def test_a_rank_whose_line_stands_still_is_missed_and_one_that_has_ended_is_not(boards, clock):
    until(lambda: boards[1].lines() and boards[0].lines())
    boards[0]._is_closed.set()  # as if it had died
    boards[0]._thread.join()
    boards[0]._is_closed.clear()
    until(lambda: boards[1]._lines[0]["beat"] == boards[0]._own["beat"])
    clock[0] = 9.0
    assert boards[1].silence() is None
    clock[0] = 11.0
    until(lambda: boards[1]._exchanged_at == clock[0])
    assert [word for word in ("rank 0 on ", "11 s") if word not in boards[1].silence()] == []
    boards[0].post(has_ended=True)
    boards[0]._exchange()
    until(lambda: boards[1].lines()[0]["has_ended"])
    clock[0] = 100.0
    until(lambda: boards[1]._exchanged_at == clock[0])
    assert boards[1].silence() is None


def test_a_word_of_all_is_waited_for_and_not_of_those_that_have_ended(boards):
    boards[0].post(summary={"episodes": 3})
    boards[1].wait_for_all("summary", patience_s=60.0)
    assert boards[1].lines()[0]["summary"] == {"episodes": 3}
    boards[1].post(has_ended=True)
    boards[0].wait_for_all("summary", patience_s=60.0)
    assert "summary" not in boards[0].lines()[1]


@pytest.mark.parametrize(
    ("line", "heard"),
    [
        ({"status": USER_ERROR}, USER_ERROR),
        ({"status": FINAL_FAILURE}, FINAL_FAILURE),
        ({"status": FAILURE, "failure": "its learner has died"}, None),  # it may be started again
        ({"has_ended": True}, None),
    ],
)
def test_a_rank_that_would_fail_again_is_heard_of_before_it_has_ended(boards, line, heard):
    boards[0].post(**line)
    assert boards[1].final_status(patience_s=60.0) == heard


def test_a_store_that_does_not_answer_is_missed(boards, clock, monkeypatch):
    has_failed = threading.Event()

    def fails():
        has_failed.set()
        raise RuntimeError("Connection reset by peer")

    monkeypatch.setattr(boards[1], "_exchange", fails)
    has_failed.wait()
    clock[0] = 11.0
    until(lambda: boards[0]._exchanged_at == clock[0])
    assert "11 s (--rank_timeout_s)" in boards[1].silence()
