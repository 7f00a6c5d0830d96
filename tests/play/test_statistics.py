import numpy as np
import pytest

from sf.play.statistics import statistics


def test_the_figures_are_those_of_numpy():
    values = np.random.default_rng(1).normal(3.0, 2.0, 50).tolist()
    s = statistics(values)
    assert (s.num, s.median, s.min, s.max) == (50, np.median(values), min(values), max(values))
    assert s.mean == pytest.approx(np.mean(values))
    assert s.std == pytest.approx(np.std(values, ddof=1))


def test_the_interval_is_the_percentile_bootstrap():
    values = [1.0, 2.0, 2.0, 5.0, 11.0, 0.0, 3.0]
    rng = np.random.default_rng(2)
    means = sorted(sum(rng.choice(values, len(values))) / len(values) for _ in range(4_000))
    s = statistics(values)
    assert s.low == pytest.approx(means[100], abs=0.3)
    assert s.high == pytest.approx(means[3_900], abs=0.3)


def test_the_interval_holds_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        s = statistics(rng.exponential(1.0, 100).tolist())
        hits += s.low <= 1.0 <= s.high
    assert 0.89 <= hits / 200 <= 0.99


def test_equal_values_leave_no_doubt():
    assert statistics([4.0] * 10)[:5] == (10, 4.0, 4.0, 4.0, 4.0)


def test_one_value_has_no_spread():
    assert statistics([7.0]).std == 0.0
