"""What the rows of a league say, from the side of the policies that learn."""

import numpy as np
import pytest

from sf.league.players.pool import Pool
from sf.league.record import ExploiterRestarted, Match, Player

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


def test_an_exploiter_is_rated_as_a_new_player_when_it_has_begun_anew():
    pool = Pool(2, [FIRST, SECOND])
    for _ in range(20):
        pool.add(met(SECOND.name, 1.0, 0.0, policy="policy_01"))
    assert pool.rating(1).mean > 200
    pool.begin_anew(ExploiterRestarted(1, 1000))
    assert pool.rating(1).mean == 0.0


def test_the_same_rows_give_the_same_pool():
    rng = np.random.default_rng(0)
    rows = [
        FIRST,
        SECOND,
        *(met(str(rng.choice([FIRST.name, "random"])), *rng.integers(2, size=2)) for _ in range(300)),
    ]
    one_by_one = Pool(1)
    for row in rows:
        one_by_one.join(row) if isinstance(row, Player) else one_by_one.add(row)
    at_once = Pool(1, rows)
    for choice in ("quality", "pfsp"):
        assert (one_by_one.probabilities(0, choice) == at_once.probabilities(0, choice)).all()
    assert one_by_one.win_rates(0) == at_once.win_rates(0)


def test_a_policy_that_wins_is_rated_above_those_it_beats_and_random_moves_are_held_at_0():
    pool = Pool(1, [SECOND, FIRST], {"random": 0.0})
    assert pool.rating(0) is None
    for _ in range(200):
        pool.add(met("random", 1.0, 0.0))
        pool.add(met(FIRST.name, 1.0, 0.0))
        pool.add(met(FIRST.name, 0.0, 1.0))
    assert pool.rating(0).mean > 300
    held = Pool(1, [FIRST])  # nobody else is there
    for _ in range(200):
        held.add(met(FIRST.name, 1.0, 0.0))
        held.add(met(FIRST.name, 0.0, 1.0))
    assert abs(held.rating(0).mean) < 50


def test_a_policy_beats_the_pool_by_its_matches_since_its_latest_snapshot():
    pool = Pool(1, [FIRST])
    for _ in range(199):
        pool.add(met(FIRST.name, 1.0, 0.0), settled={0})
    pool.add(met(FIRST.name, 1.0, 0.0))
    assert not pool.beats_the_pool(0, 0.6)  # 200 are needed
    pool.add(met(FIRST.name, 0.0, 1.0), settled={0})
    assert pool.beats_the_pool(0, 0.99)
    assert not pool.beats_the_pool(0, 1.0)
    pool.join(Player("random"))
    assert pool.beats_the_pool(0, 0.99)
    pool.join(Player("policy_00_000000000200", 0, 200))
    assert pool.last_snapshot == [200]
    assert not pool.beats_the_pool(0, 0.6)
