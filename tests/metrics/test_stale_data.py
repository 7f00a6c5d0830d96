"""The sentence about data that is too old."""

import pytest

from sf.metrics.stale_data import FEWEST, StaleData

LOW, HIGH = {"effective_sample_size": FEWEST - 0.2, "lag_mean": 240.0}, {"effective_sample_size": FEWEST}


def sentences(*seen):
    """What is said at each (seconds, metrics)."""
    stale = StaleData(steps_per_iteration=80)
    return [stale.see(now, metrics) for now, metrics in seen]


def test_it_is_said_once_when_it_has_been_low_for_a_minute():
    said = sentences((0, LOW), (30, LOW), (59, LOW), (60, LOW), (61, LOW), (200, LOW))
    assert [sentence is not None for sentence in said] == [False, False, False, True, False, False]
    assert "worth 50% of its samples" in said[3]


@pytest.mark.parametrize("between", [HIGH])
def test_a_minute_begins_anew_where_it_was_high(between):
    assert sentences((0, LOW), (50, between), (55, LOW), (100, LOW)) == [None] * 4
    assert sentences((0, LOW), (50, between), (55, LOW), (115, LOW))[-1] is not None


def test_a_report_without_a_figure_changes_nothing_that_is_said():
    assert sentences((0, {}), (100, {})) == [None, None]


@pytest.mark.parametrize(
    ("lag", "remedy"), [(240.0, "is 3.0 iterations old: --rollout auto"), (60.0, "--learning_rate")]
)
def test_the_remedy_depends_on_whether_it_is_the_sampler_that_is_ahead(lag, remedy):
    assert remedy in sentences((0, LOW), (60, LOW | {"lag_mean": lag}))[-1]
