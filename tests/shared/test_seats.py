"""Seats: a player stays until the matches against it are over, at whatever moment its seat is closed."""

import dataclasses

import numpy as np
import pytest

from sf.shared.seats import Seats

GROUP, SEAT = 1, 2


def new_seats(num_policies=1):
    return Seats.allocate(num_seats=4, num_groups=3, num_policies=num_policies)


class Interrupted:
    """An array at whose accesses of one number something else happens before."""

    def __init__(self, array, accesses, at, happens):
        self._array, self._accesses, self._at, self._happens = array, accesses, at, happens

    def _count(self):
        if len(self._accesses) == self._at:
            self._happens()
        self._accesses.append(None)

    def __getitem__(self, where):
        self._count()
        return self._array[where]

    def __setitem__(self, where, value):
        self._count()
        self._array[where] = value


@pytest.mark.parametrize("at", range(6))
def test_the_parent_that_closes_a_seat_sees_every_match_that_begins_there(at):
    seats = new_seats()
    seats.give(SEAT, 7, "somebody")
    seats.set_open(SEAT, True)
    was_idle = []

    def close():
        seats.set_open(SEAT, False)
        was_idle.append(seats.is_idle(SEAT))

    accesses = []
    tables = {name: Interrupted(seats.tables[name], accesses, at, close) for name in ("is_open", "in_play")}
    worker = dataclasses.replace(seats, tables={**tables, "player_idx": seats.tables["player_idx"]})
    player = worker.sit_down(GROUP, SEAT)
    if not was_idle:  # there are fewer accesses
        close()
    # Where it found the seat idle, no match has begun; where one has begun, it is counted.
    assert (player is None) or (was_idle == [False] and not seats.is_idle(SEAT))
    if player is None:
        assert seats.is_idle(SEAT)
    else:
        assert player == 7
        seats.get_up(GROUP, SEAT)
        assert seats.is_idle(SEAT)


def test_what_a_seat_says_of_its_player():
    seats = new_seats()
    assert seats.turn(SEAT) == 0
    seats.give(SEAT, 3, "a long name of somebody, ä")
    assert (seats.turn(SEAT), seats.name(SEAT)) == (1, "a long name of somebody, ä")
    assert not seats.is_loaded(SEAT)
    assert not seats.has_failed(SEAT)
    seats.has_loaded(SEAT, 1, 0.25)
    assert seats.is_loaded(SEAT)
    assert seats.loading_s(SEAT) == 0.25
    seats.give(SEAT, 4, "short")
    assert seats.name(SEAT) == "short"
    assert not seats.is_loaded(SEAT)
    seats.could_not_load(SEAT, 2)
    assert seats.has_failed(SEAT)


def test_policies_share_the_seats_out_and_only_open_ones_are_offered():
    seats = new_seats(num_policies=2)
    assert [list(seats.of_policy(p)) for p in range(2)] == [[0, 2], [1, 3]]
    rng = np.random.default_rng(0)
    assert seats.draw(1, rng) is None
    seats.set_open(2, True)
    seats.set_open(3, True)
    assert {seats.draw(1, rng) for _ in range(10)} == {3}


def test_an_open_seat_is_drawn_by_its_weight():
    seats = new_seats()
    for seat, weight in ((0, 0.2), (1, 0.6), (2, 0.2), (3, 100.0)):
        seats.give(seat, seat, str(seat))
        seats.weigh(seat, weight)
        seats.set_open(seat, seat < 3)
    rng = np.random.default_rng(0)
    drawn = np.bincount([seats.draw(0, rng) for _ in range(3000)], minlength=4) / 3000
    assert drawn == pytest.approx(np.array([0.2, 0.6, 0.2, 0.0]), abs=0.03)


def test_the_matches_of_a_dead_worker_are_over():
    seats = new_seats()
    seats.set_open(SEAT, True)
    seats.sit_down(0, SEAT)
    seats.sit_down(GROUP, SEAT)
    seats.recover_worker(range(1, 3))
    assert not seats.is_idle(SEAT)
    seats.recover_worker(range(1))
    assert seats.is_idle(SEAT)
