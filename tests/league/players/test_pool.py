"""What the rows of a league say, from the side of the policies that learn."""

import pytest

from sf.league.players.pool import Pool
from sf.league.record import Match, Player

FIRST, SECOND = Player("policy_00_000000000100", 0, 100), Player("random")


def met(name, own, other, probability=0.5, policy="policy_00"):
    return Match((policy, name), (own, other), 1000, probability)


def test_win_rates_are_of_each_policy_and_a_draw_is_half_a_win():
    pool = Pool(2, [FIRST, SECOND])
    pool.add(met(FIRST.name, 1.0, 0.0))
    pool.add(met(FIRST.name, 0.0, 0.0))
    pool.add(met(SECOND.name, -1.0, 0.0, policy="policy_01"))
    pool.add(Match(("policy_00", "policy_01"), (1.0, 0.0), 1000))  # says nothing of the pool
    assert pool.win_rates(0) == {FIRST.name: (0.75, 2)}
    assert pool.win_rates(1) == {SECOND.name: (0.0, 1)}
    pool.add(Match(("policy_01", SECOND.name, "policy_01", SECOND.name), (5.0, 2.0, 0.0, 2.0), 1, 1.0))
    assert pool.win_rates(1) == {SECOND.name: (0.5, 2)}  # the mean of the agents decides
    for won in [0.0] * 100 + [1.0] * 80:
        pool.add(met(FIRST.name, won, 1.0 - won))
    assert pool.win_rates(0) == {FIRST.name: (0.8, 100)}  # the latest


def test_draws_and_defeats_leave_a_player_its_quality():
    pool = Pool(1, [FIRST, SECOND])
    for _ in range(100):
        pool.add(met(FIRST.name, 0.0, 0.0))
        pool.add(met(FIRST.name, -1.0, 1.0))
    assert pool.probabilities(0, "quality").tolist() == [0.5, 0.5]


def test_a_new_player_is_as_likely_as_the_likeliest():
    pool = Pool(1, [FIRST, SECOND])
    for _ in range(1000):
        pool.add(met(FIRST.name, 1.0, 0.0))
    before = pool.probabilities(0, "quality")
    assert before[0] < 0.05
    pool.join(Player("policy_00_000000000200", 0, 200))
    after = pool.probabilities(0, "quality")
    assert after[1] == pytest.approx(after[2])
    assert after.shape == (3,)


def test_a_policy_that_wins_is_rated_above_those_it_beats_and_random_moves_are_held_at_0():
    pool = Pool(1, [SECOND, FIRST], {"random": 0.0})
    assert pool.rating(0) is None
    for _ in range(200):
        pool.add(met("random", 1.0, 0.0))
        pool.add(met(FIRST.name, 1.0, 0.0))
        pool.add(met(FIRST.name, 0.0, 1.0))
    assert pool.rating(0).mean > 300
