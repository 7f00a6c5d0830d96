"""Whom of the pool to meet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf.league.players.pool import probabilities, quality_after_win
from sf.league.players.seat_keeper import seat_weights

CHOICES = ["quality", "pfsp", "pfsp_even", "uniform"]
counts = st.integers(0, 100)
pools = st.lists(st.tuples(st.floats(-50, 5), counts, counts), min_size=1, max_size=20)


def chances(choice, quality=(0.0, 0.0, 0.0), wins=(0, 0, 0), matches=(0, 0, 0)):
    return probabilities(choice, np.array(quality), np.array(wins), np.array(matches))


@given(pools, st.sampled_from(CHOICES))
def test_they_are_probabilities_and_nobody_is_given_up(pool, choice):
    quality, wins, losses = (np.array(column) for column in zip(*pool, strict=True))
    found = probabilities(choice, quality, wins, wins + losses)
    assert found.shape == (len(pool),)
    assert found.sum() == pytest.approx(1.0)
    assert (found > 0).all()


def test_the_probabilities_are_those_of_the_papers():
    met = {"wins": [98, 49, 0], "matches": [98, 98, 98]}  # win rates 0.99, 0.5, 0.01
    hard = np.array([0.01**2, 0.5**2, 0.99**2])
    assert chances("pfsp", **met) == pytest.approx(hard / hard.sum())
    assert chances("pfsp_even", **met) == pytest.approx(np.array([0.0099, 0.25, 0.0099]) / 0.2698)
    assert chances("quality", quality=[0.0, np.log(2), np.log(5)]) == pytest.approx(np.array([1, 2, 5]) / 8)
    for choice in CHOICES:  # where nothing is known
        assert chances(choice) == pytest.approx(np.full(3, 1 / 3))


def test_a_beaten_player_loses_quality_by_how_seldom_it_is_met():
    assert quality_after_win(1.0, matches=4.0, num_players=4) == pytest.approx(0.99)
    assert quality_after_win(1.0, matches=2.0, num_players=4) == pytest.approx(0.995)
    for nobody_else in ([1.0, 0.0], [0.0, 0.0]):
        assert (seat_weights(np.array(nobody_else), 2) > 0).all()


def test_of_two_players_the_one_that_is_beaten_is_met_ever_less():
    quality, rng = np.zeros(2), np.random.default_rng(0)
    for _ in range(2000):
        chance = probabilities("quality", quality, np.zeros(2), np.zeros(2))
        if rng.choice(2, p=chance) == 0:
            quality[0] = quality_after_win(float(quality[0]), 1 / float(chance[0]), 2)
    assert probabilities("quality", quality, np.zeros(2), np.zeros(2))[0] < 0.01


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20), st.integers(1, 8))
def test_seated_for_a_share_of_the_time_everybody_is_met_with_its_probability(sizes, num_seats):
    probability = np.array(sizes) / sum(sizes)
    weights = seat_weights(probability, num_seats)
    seated = probability / weights  # share of the time
    assert (seated <= 1.0).all()
    assert seated.sum() == pytest.approx(min(num_seats, len(probability)))
    assert np.sort(weights)[-num_seats:].sum() == pytest.approx(1.0)  # so a weight is a probability
