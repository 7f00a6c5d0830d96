import math

import pytest

from sf.learner.optimizer.learning_rate import advantage_scale, kl_adaptive


@pytest.mark.parametrize(("kl", "factor"), [(0.021, 1 / 1.5), (0.019, 1.0), (0.006, 1.0), (0.004, 1.5)])
def test_an_adaptive_rate_falls_after_large_updates_and_rises_after_small_ones(kl, factor):
    assert kl_adaptive(0.001, kl, 0.01, 1e-6, 1.0) == pytest.approx(0.001 * factor)


def test_an_adaptive_rate_stays_within_its_bounds_also_where_they_have_changed_and_ignores_a_kl_that_is_nan():
    assert kl_adaptive(1e-4, 1.0, 0.01, 0.9e-4, 1.1e-4) == 0.9e-4
    assert kl_adaptive(1e-4, 0.0, 0.01, 0.9e-4, 1.1e-4) == 1.1e-4
    assert kl_adaptive(1e-3, 0.01, 0.01, 1e-6, 1e-4) == 1e-4
    assert kl_adaptive(1e-5, 0.01, 0.01, 1e-4, 1e-3) == 1e-4
    assert kl_adaptive(1e-4, math.nan, 0.01, 1e-6, 1.0) == 1e-4


@pytest.mark.parametrize(
    ("advantages", "returns", "full_share", "worth"),
    [
        (1.0, 40.0, 0.05, 0.25),
        (2.0, 40.0, 0.05, 1.0),
        (30.0, 40.0, 0.05, 1.0),
        (0.0, 40.0, 0.05, 0.0),
        (0.1, 40.0, 0.0, 1.0),
        (math.nan, 40.0, 0.05, 1.0),
        (1.0, math.nan, 0.05, 1.0),
        (1.0, 0.0, 0.05, 1.0),
    ],
)
def test_advantages_that_are_small_beside_the_returns_are_worth_a_part_of_a_step(
    advantages, returns, full_share, worth
):
    assert advantage_scale(advantages, returns, full_share) == worth
