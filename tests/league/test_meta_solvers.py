import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sf.league import meta_solvers
from sf.league.meta_solvers import alpharank, latest, nash, nash_average, uniform

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


def test_rock_paper_scissors_is_played_evenly():
    np.testing.assert_allclose(nash(ROCK_PAPER_SCISSORS), [1 / 3] * 3, atol=1e-6)


def test_uneven_stakes_give_the_mixture_of_the_book():
    a, b, c = 1.0, 2.0, 3.0  # what the pairs 01, 12, 20 play for: shares are b, c, a by the opposite side
    game = np.array([[0, a, -c], [-a, 0, b], [c, -b, 0]])
    np.testing.assert_allclose(nash(game), np.array([b, c, a]) / 6, atol=1e-6)


def test_the_best_of_a_transitive_game_has_all():
    np.testing.assert_allclose(nash(TRANSITIVE), [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(nash_average(TRANSITIVE).skill, [-0.9, -0.6, 0], atol=1e-6)


def test_whom_a_cycle_beats_has_no_share_and_a_negative_skill():
    game = np.zeros((4, 4))
    game[:3, :3] = ROCK_PAPER_SCISSORS
    game[:3, 3], game[3, :3] = 0.4, -0.4
    average = nash_average(game)
    np.testing.assert_allclose(average.mixture, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-6)
    np.testing.assert_allclose(average.skill, [0, 0, 0, -0.4], atol=1e-6)


def test_a_mixture_of_a_game_without_gain_is_even():
    np.testing.assert_allclose(nash(np.zeros((5, 5))), [0.2] * 5, atol=1e-6)


def test_a_player_that_is_there_twice_shares_and_changes_nobody():
    twice = ROCK_PAPER_SCISSORS[np.ix_([0, 1, 2, 2], [0, 1, 2, 2])]
    np.testing.assert_allclose(nash(twice), [1 / 3, 1 / 3, 1 / 6, 1 / 6], atol=1e-5)
    np.testing.assert_allclose(nash_average(twice).skill, 0, atol=1e-6)


def test_a_game_of_different_sides_has_its_value():
    game = np.array([[3.0, -1.0], [-2.0, 1.0]])  # 2x2 by hand: p = 3/7, value 1/7
    np.testing.assert_allclose(nash(game), [3 / 7, 4 / 7], atol=1e-6)
    np.testing.assert_allclose(nash(game) @ game, [1 / 7] * 2, atol=1e-6)


def test_of_several_mixtures_it_is_the_most_even_one():
    """Rows 0 and 1 are as good against the only column that matters, within a bound by the other column."""
    game = np.array([[0.0, 1.0], [0.0, -3.0], [-1.0, 5.0]])  # p = (p, 1 - p, 0) with p - 3 (1 - p) >= 0
    np.testing.assert_allclose(nash(game), [0.75, 0.25, 0], atol=1e-4)


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=40)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.integers(-3, 3).map(float))
    )
)
def test_no_pure_deviation_gains_where_many_payoffs_are_equal(game):
    p = nash(game)
    assert sum(p) == pytest.approx(1)
    assert exploitability(game, p) <= 1e-5 * max(np.abs(game).max(), 1)


@pytest.mark.parametrize("seed", range(4))
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


def test_a_large_game_is_solved():
    rng = np.random.default_rng(0)
    game = antisymmetric(rng.uniform(-1, 1, (60, 60)))
    assert nash_average(game).skill.max() < 1e-6


def test_uniform_and_latest_ask_only_for_the_size():
    assert uniform(TRANSITIVE).tolist() == [1 / 3] * 3
    assert latest(TRANSITIVE).tolist() == [0, 0, 1]


def test_alpharank_agrees_with_what_is_known_of_both_games():
    pytest.importorskip("pyspiel")
    np.testing.assert_allclose(alpharank(ROCK_PAPER_SCISSORS), [1 / 3] * 3, atol=1e-6)
    assert alpharank(TRANSITIVE)[2] > 0.99
    assert alpharank(np.zeros((1, 1))).tolist() == [1.0]


@pytest.mark.parametrize("size", [1e-6, 1e-3, 20.0, 1e6])
@pytest.mark.parametrize("game", [TRANSITIVE, antisymmetric(np.random.default_rng(0).uniform(-1, 1, (4, 4)))])
def test_alpharank_does_not_depend_on_the_unit_of_the_payoffs(game, size):
    pytest.importorskip("pyspiel")
    np.testing.assert_allclose(alpharank(size * game), alpharank(game), atol=1e-6)


def test_alpharank_of_a_game_without_gain_is_even():
    pytest.importorskip("pyspiel")
    assert alpharank(np.zeros((4, 4))).tolist() == [0.25] * 4


def test_a_solver_whose_package_is_missing_is_one_sentence(monkeypatch):
    monkeypatch.setattr(meta_solvers.extras, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"alpha-rank needs pyspiel and open_spiel: pip install '.\[openspiel\]'"):
        alpharank(TRANSITIVE)
    with pytest.raises(ValueError, match=r"a Nash mixture needs scipy: pip install '.\[league\]'"):
        nash(TRANSITIVE)
