import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sf.league.meta_solvers import alpharank, nash, nash_average

ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
TRANSITIVE = np.array([[0.0, -0.5, -0.9], [0.5, 0.0, -0.6], [0.9, 0.6, 0.0]])


def exploitability(payoff, p):
    """What the best pure answer gains from p beyond the value of the game, by loops alone: the condition of Nash.

    The value is bounded from the other side by the column's own solution.
    """
    num_rows, num_columns = payoff.shape
    guaranteed = min(sum(p[i] * payoff[i][j] for i in range(num_rows)) for j in range(num_columns))
    q = nash(-payoff.T)
    most = max(sum(payoff[i][j] * q[j] for j in range(num_columns)) for i in range(num_rows))
    return most - guaranteed


def entropy(p):
    return -sum(share * np.log(share) for share in p if share > 0)


def antisymmetric(half):
    return half - half.T


@pytest.mark.parametrize(
    ("game", "mixture"),
    [
        (ROCK_PAPER_SCISSORS, [1 / 3] * 3),
        ([[0, 1, -3], [-1, 0, 2], [3, -2, 0]], [2 / 6, 3 / 6, 1 / 6]),  # uneven stakes
        (TRANSITIVE, [0, 0, 1]),
        (np.zeros((5, 5)), [0.2] * 5),
        ([[3, -1], [-2, 1]], [3 / 7, 4 / 7]),  # different sides, by hand: the value is 1/7
        ([[0, 1], [0, -3], [-1, 5]], [0.75, 0.25, 0]),  # the most even of (p, 1 - p, 0) with p - 3 (1 - p) >= 0
    ],
)
def test_small_games_have_the_mixture_that_is_known(game, mixture):
    np.testing.assert_allclose(nash(np.array(game, float)), mixture, atol=1e-4)


def test_whom_a_cycle_beats_has_no_share_and_a_negative_skill():
    game = np.zeros((4, 4))
    game[:3, :3] = ROCK_PAPER_SCISSORS
    game[:3, 3], game[3, :3] = 0.4, -0.4
    average = nash_average(game)
    np.testing.assert_allclose(average.mixture, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-6)
    np.testing.assert_allclose(average.skill, [0, 0, 0, -0.4], atol=1e-6)


def test_a_player_that_is_there_twice_shares_and_changes_nobody():
    twice = ROCK_PAPER_SCISSORS[np.ix_([0, 1, 2, 2], [0, 1, 2, 2])]
    np.testing.assert_allclose(nash(twice), [1 / 3, 1 / 3, 1 / 6, 1 / 6], atol=1e-5)
    np.testing.assert_allclose(nash_average(twice).skill, 0, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 7).flatmap(
        lambda n: arrays(np.float64, (n, n), elements=st.floats(-1, 1).map(lambda x: round(x, 3)))
    )
)
def test_no_pure_deviation_gains_from_a_random_meta_game(half):
    game = antisymmetric(half)
    average = nash_average(game)
    p = average.mixture
    assert p.shape == (len(game),)
    assert (p >= 0).all()
    assert sum(p) == pytest.approx(1)
    scale = max(np.abs(game).max(), 1e-12)
    assert average.skill.max() <= 1e-5 * scale
    assert exploitability(game, p) <= 1e-5 * scale
    assert abs(average.skill[p > 1e-3]).max() <= 1e-2 * scale


@settings(deadline=None, max_examples=25)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.integers(-3, 3).map(float))
    )
)
def test_no_pure_deviation_gains_where_many_payoffs_are_equal(game):
    p = nash(game)
    assert sum(p) == pytest.approx(1)
    assert exploitability(game, p) <= 1e-5 * max(np.abs(game).max(), 1)


@pytest.mark.parametrize("seed", range(2))
def test_no_other_mixture_that_is_as_good_is_more_even(seed):
    """Games with copies of players have many; random ones of them are mixed from the corners."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, 6)
    game = ROCK_PAPER_SCISSORS[np.ix_(which, which)]
    p = nash(game)
    for _ in range(300):
        shares = np.zeros(6)
        for kind in range(3):
            members = np.flatnonzero(which == kind)
            if len(members):
                shares[members] = rng.dirichlet(np.ones(len(members))) * p[members].sum()
        assert (shares @ game).min() == pytest.approx((p @ game).min(), abs=1e-6)
        assert entropy(shares) <= entropy(p) + 1e-6


def test_alpharank_agrees_with_what_is_known_of_both_games():
    pytest.importorskip("pyspiel")
    np.testing.assert_allclose(alpharank(ROCK_PAPER_SCISSORS), [1 / 3] * 3, atol=1e-6)
    assert alpharank(TRANSITIVE)[2] > 0.99
    for num in (1, 4):
        assert alpharank(np.zeros((num, num))).tolist() == [1 / num] * num


@pytest.mark.parametrize("size", [1e-6, 20.0, 1e6])
def test_alpharank_does_not_depend_on_the_unit_of_the_payoffs(size):
    pytest.importorskip("pyspiel")
    for game in (TRANSITIVE, antisymmetric(np.random.default_rng(0).uniform(-1, 1, (4, 4)))):
        np.testing.assert_allclose(alpharank(size * game), alpharank(game), atol=1e-6)
