import math

import numpy as np
import pytest

from sf.evaluation import statistics as module
from sf.evaluation.statistics import interval_text, mean_text, t_quantile


def statistics(values, match_idxs=None):
    return module.statistics(values, range(len(values)) if match_idxs is None else match_idxs)


def test_the_figures_are_those_of_numpy():
    values = np.random.default_rng(1).normal(3.0, 2.0, 50).tolist()
    s = statistics(values)
    assert (s.num, s.median, s.min, s.max) == (50, np.median(values), min(values), max(values))
    assert s.mean == pytest.approx(np.mean(values))
    assert s.std == pytest.approx(np.std(values, ddof=1))


def test_the_interval_is_the_percentile_bootstrap():
    values = [1.0, 2.0, 2.0, 5.0, 11.0, 0.0, 3.0] * 6
    rng = np.random.default_rng(2)
    means = sorted(sum(rng.choice(values, len(values))) / len(values) for _ in range(4_000))
    s = statistics(values)
    assert s.low == pytest.approx(means[100], abs=0.1)
    assert s.high == pytest.approx(means[3_900], abs=0.1)


@pytest.mark.parametrize("num", [2, 3, 5, 10, 29, 30])
def test_the_interval_holds_the_true_mean_as_often_as_it_says(num):
    def hits(draw):
        found = (statistics(draw(size=num)) for _ in range(300))
        return sum(s.low <= 1.0 <= s.high for s in found) / 300

    rng = np.random.default_rng(num)
    assert 0.92 <= hits(lambda size: rng.normal(1.0, 3.0, size)) <= 0.98
    # Of few values nothing says how skewed they are.
    assert 0.85 <= hits(lambda size: rng.exponential(1.0, size)) <= 0.98


def test_few_matches_of_different_sizes_have_the_interval_of_student():
    values, match_idxs = [1.0, 3.0, 2.0, 6.0, 5.0, 4.0], [0, 0, 1, 2, 2, 2]
    s = statistics(values, match_idxs)
    means, num = [2.0, 2.0, 5.0], [2, 1, 3]
    squares = sum((n * (mean - 3.5)) ** 2 for mean, n in zip(means, num, strict=True))
    half = 4.303 * math.sqrt(squares / 2 / 3) / 2  # 2 episodes a match
    assert (s.mean, s.low, s.high) == pytest.approx((3.5, 3.5 - half, 3.5 + half))


@pytest.mark.parametrize("num", [3, 100, 3_000])
def test_equal_values_have_no_interval(num):
    assert statistics([0.1] * num)[:4] == (num, pytest.approx(0.1), None, None)
    gains = np.random.default_rng(5).normal(size=num)
    s = statistics([*gains, *gains, *-2 * gains], [*range(num)] * 3)  # what sums to zero in each match
    assert (s.low, s.high) == (None, None)


def test_a_quantile_leaves_a_fortieth_of_students_t_above_it():
    for degrees in range(1, 31):
        scale = math.gamma((degrees + 1) / 2) / math.gamma(degrees / 2) / math.sqrt(degrees * math.pi)
        t = np.linspace(0.0, t_quantile(np.array(degrees)), 10_001)
        density = scale * (1 + t**2 / degrees) ** (-(degrees + 1) / 2)
        assert 0.5 + np.sum((density[1:] + density[:-1]) / 2 * np.diff(t)) == pytest.approx(0.975, abs=3e-5)
    assert t_quantile(np.array([[30, 31], [1000, 1]])).tolist() == [[2.042, 2.042], [2.042, 12.706]]


@pytest.mark.parametrize("num", [2, 20, 400])
def test_equal_scores_are_hardly_those_of_a_mean_outside_of_their_interval(num):
    """At the mean of an end, with the other matches as far away as can be, all are equal in 2.5 of 100 samples."""
    low, high = module.interval_of_constant(1.0, num, lowest=-3.0, highest=2.0)
    for end, other in ((low, -3.0), (high, 2.0)):
        share_of_others = (end - 1.0) / (other - 1.0)
        assert (1 - share_of_others) ** num == pytest.approx(0.025)
    assert module.interval_of_constant(1.0, num, lowest=1.0, highest=1.0) == (1.0, 1.0)


def test_the_interval_counts_matches_and_not_those_who_share_one():
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        shared = rng.normal(1.0, 1.0, 60).repeat(4)
        s = statistics((shared + rng.normal(0.0, 0.1, 240)).tolist(), np.arange(60).repeat(4))
        hits += s.low <= 1.0 <= s.high
    assert 0.89 <= hits / 200 <= 0.99


def test_a_rate_has_the_interval_of_wilson():
    def interval(results, match_idxs=None):
        found = module.rate_statistics(results, range(len(results)) if match_idxs is None else match_idxs)
        return found.low, found.high

    assert interval([1.0] * 20) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert interval([0.0] * 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert interval([1.0, 0.0] * 5) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert interval([0.5] * 10) == interval([1.0, 0.0] * 5)
    assert interval([1.0] * 40, np.arange(20).repeat(2)) == interval([1.0] * 20)
    assert interval([1.0, 1.0], [3, 3]) == (None, None)


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5, 0.97])
def test_the_interval_of_a_rate_holds_the_chance_as_often_as_it_says(chance):
    rng = np.random.default_rng(7)
    rates = rng.binomial(40, chance, 400) / 40
    hits = sum(low <= chance <= high for low, high in (module.wilson_interval(rate, 40) for rate in rates))
    assert hits / 400 >= 0.9


def test_one_match_has_no_spread_and_no_interval():
    assert statistics([7.0]).std == 0.0
    s = statistics([7.0, 9.0], [3, 3])
    assert (s.low, s.high, interval_text(s)) == (None, None, "-")
    assert mean_text(s) == "8.00 over 2 episodes"
    assert mean_text(statistics([7.0])) == "7.00 over 1 episode"
    assert mean_text(statistics([4.0, 4.0])) == "4.00 over 2 episodes"
