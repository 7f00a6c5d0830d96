"""What the learners of all ranks agree on before each iteration."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
import torch

from sf.ranks.agreement import Agreement, RankStatus
from sf.ranks.ranks import ALONE, Ranks


class ThreadRanks(Ranks):
    """Ranks in threads of this process."""

    def __init__(self, rank, size, barrier, board):
        self.rank, self.size = rank, size
        self._barrier, self._board = barrier, board

    def totals(self, *sums):
        self._board[self.rank] = [each.clone() for each in sums]
        self._barrier.wait()
        found = [torch.stack(of_all).sum(0) for of_all in zip(*self._board, strict=True)]
        self._barrier.wait()
        self.waited_s += 1.0 + self.rank
        return found


def together(statuses):
    """What each of the ranks hears, whose own statuses these are; each reaches an agreement twice."""
    return each(len(statuses), lambda agreement, rank: [agreement.reach(statuses[rank]) for _ in range(2)])


def each(size, work):
    """What `work(agreement, rank)` returns for each of the ranks."""
    barrier, board, heard = threading.Barrier(size), [None] * size, [None] * size

    def come(rank):
        heard[rank] = work(Agreement(ThreadRanks(rank, size, barrier, board)), rank)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return heard


def test_all_hear_the_same_steps_are_sums_and_the_clock_and_the_orders_are_those_of_the_first():
    own = [
        RankStatus(env_steps=10, goes_on=True, lost_steps=3, share_done=0.25, has_orders=True),
        RankStatus(env_steps=20, goes_on=True, lost_steps=4, share_done=0.75),
    ]
    of_all = RankStatus(env_steps=30, goes_on=True, lost_steps=7, share_done=0.25, has_orders=True)
    assert together(own) == [[of_all] * 2] * 2
    assert not together([RankStatus(1, True), RankStatus(1, True, has_orders=True)])[0][0].has_orders


def test_where_one_ends_all_end():
    own = [RankStatus(10, goes_on=True), RankStatus(0, goes_on=False), RankStatus(10, goes_on=True)]
    assert {(word.goes_on, word.is_signalled) for words in together(own) for word in words} == {(False, False)}
    own[1] = RankStatus(0, goes_on=False, is_signalled=True)
    assert {(word.goes_on, word.is_signalled) for words in together(own) for word in words} == {(False, True)}


def test_the_share_of_time_that_goes_by_in_waiting_is_known_of_each_rank_which_says_so_meanwhile(monkeypatch):
    now, is_held_up, while_waiting = [0.0], [], []
    monkeypatch.setattr("sf.ranks.agreement.time.perf_counter", lambda: now[0])

    class Watched(ThreadRanks):
        def totals(self, *sums):
            while_waiting.append(bool(is_held_up))
            return super().totals(*sums)

    @contextmanager
    def held_up():
        is_held_up.append(True)
        yield
        is_held_up.clear()

    agreement = Agreement(Watched(0, 2, threading.Barrier(1), [None]), held_up)
    for _ in range(3):
        agreement.reach(RankStatus(1, True))  # what it waits in one, it tells in the next
    assert (while_waiting, is_held_up) == ([True] * 3, [])
    now[0] = 10.0
    assert agreement.pop_wait_shares() == pytest.approx([0.2, 0.0])
    now[0] = 20.0
    assert agreement.pop_wait_shares() == [0.0, 0.0]


@pytest.mark.parametrize(("last_s", "is_asked"), [(0.0, True), (5.0, True), (0.01, False)])
def test_within_a_long_iteration_a_stop_of_one_is_heard_by_all(last_s, is_asked):
    def go_on(agreement, rank):
        agreement.reach(RankStatus(1, goes_on=True, last_s=last_s))
        return [agreement.goes_on(True), agreement.goes_on(rank == 0)]

    assert each(2, go_on) == [[True, not is_asked]] * 2


def test_one_alone_agrees_with_itself():
    agreement, own = Agreement(ALONE), RankStatus(10, goes_on=True, lost_steps=1, share_done=0.5, has_orders=True)
    assert agreement.reach(own) is own
    assert [agreement.goes_on(True), agreement.goes_on(False)] == [True, False]
