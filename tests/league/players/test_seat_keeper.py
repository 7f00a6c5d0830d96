"""Who is met how often, over many matches against a pool that is larger than the number of seats."""

from types import SimpleNamespace

import numpy as np
import pytest

from sf.league.players import pool as pool_module
from sf.league.players.pool import Pool
from sf.league.players.pool_roles import PoolRoles
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.record import Match, Player
from sf.shared.seats import Seats

NUM_ENVS = 20  # in which a match goes on at a time
POLICY = "policy_00"


class NoRatings:
    """Stands in for `OpenskillRatings`, which take most of the time of a match, and choose nobody."""

    def __init__(self, held):
        pass

    def add(self, row):
        pass


@pytest.fixture(autouse=True)
def _without_ratings(monkeypatch):
    monkeypatch.setattr(pool_module, "OpenskillRatings", NoRatings)


class Matches:
    """Of one policy, which wins this share of those against each player. Half of the players join halfway."""

    def __init__(self, choice, num_seats, win_rates, seed=0):
        self.choice = choice
        self.win_rates = win_rates
        self.rng = np.random.default_rng(seed)
        self.pool = Pool(1)
        self.seats = Seats.allocate(num_seats, num_groups=1, num_policies=1)
        wake = SimpleNamespace(put=lambda idx: None)
        self.keeper = SeatKeeper(self.seats, self.pool, PoolRoles((0,)), choice, wake, np.random.default_rng(seed))
        self.playing = [None] * NUM_ENVS  # seat and player
        self.met = np.zeros(len(win_rates))
        self.asked = np.zeros(len(win_rates))

    def join(self, num_players):
        for idx in range(len(self.pool.players), num_players):
            self.pool.join(Player(f"player {idx}"))
        self.keeper.weigh()

    def play(self, num_matches):
        """Until so many are over in all. The parent looks after every few."""
        while self.met.sum() < num_matches:
            probability = self.pool.probabilities(0, self.choice)
            ended = self.rng.integers(NUM_ENVS, size=NUM_ENVS)  # some matches are longer than others
            for env in ended.tolist():
                self._end(env, probability)
                self._begin(env)
            self.keeper.weigh()
            self.keeper.see_to(0, lambda: None)
            for seat in range(self.seats.num_seats):  # as the player worker does
                self.seats.has_loaded(seat, self.seats.turn(seat), 0.0)
        return self

    def _begin(self, env):
        seat = self.seats.draw(0, self.rng)
        player = None if seat is None else self.seats.sit_down(0, seat)
        self.playing[env] = None if player is None else (seat, player)

    def _end(self, env, probability):
        if self.playing[env] is None:
            return
        seat, player = self.playing[env]
        self.met[player] += 1
        self.asked[: len(probability)] += probability
        names = (POLICY, self.pool.players[player].name)
        won = float(self.rng.random() < self.win_rates[player])
        self.pool.add(Match(names, (won, 0.5), 1, self.keeper.note_match(0, names)))
        self.seats.get_up(0, seat)


@pytest.mark.parametrize(
    ("choice", "num_seats"), [("quality", 1), ("quality", 8), ("pfsp", 2), ("pfsp_even", 8), ("uniform", 2)]
)
def test_players_are_met_as_often_as_they_are_to_be(choice, num_seats):
    num_matches = 10_000
    matches = Matches(choice, num_seats, win_rates=[0.02, 0.5] + [0.9] * 8)
    matches.join(5)
    matches.play(num_matches // 2)
    matches.join(10)
    matches.play(num_matches)
    assert matches.met / num_matches == pytest.approx(matches.asked / num_matches, abs=0.015)
    if choice in ("quality", "pfsp"):
        assert matches.met[0] / num_matches > 0.5  # whoever wins is met most, also where it has one seat of eight
    assert matches.seats.tables["turn"].sum() < num_matches / 16 + num_seats


def test_nobody_loses_more_quality_than_if_every_match_had_been_won():
    num_matches = 10_000
    matches = Matches("quality", 2, win_rates=[0.0] * 3 + [1.0] * 3)
    matches.join(6)
    matches.play(num_matches)
    probability = matches.pool.probabilities(0, "quality")
    assert probability[:3] == pytest.approx(np.full(3, 1 / 3), rel=0.01)
    assert (probability[3:] > np.exp(-0.01 / 6 * num_matches) / 4).all()


def test_players_that_are_beaten_as_often_are_about_as_likely_whatever_the_order():
    matches = Matches("quality", 2, win_rates=[1.0] * 10)
    matches.join(10)
    matches.play(10_000)
    probability = matches.pool.probabilities(0, "quality")
    assert probability.max() < 3 * probability.min()
