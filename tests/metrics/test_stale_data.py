"""The sentence about data that is too old."""

import pytest

from sf.config import Config
from sf.metrics.stale_data import FEWEST, StaleData

LOW, HIGH = {"effective_sample_size": FEWEST - 0.2, "lag_mean": 240.0}, {"effective_sample_size": FEWEST}


FLAGS = {"num_batches_per_epoch": 8, "num_epochs": 10}


def sentences(*seen, flags=None, has_auto_sizes=False):
    """What is said at each (seconds, metrics)."""
    stale = StaleData(Config().replace(**(flags or FLAGS)), has_auto_sizes)
    return [stale.see(now, metrics) for now, metrics in seen]


def test_it_is_said_once_when_it_has_been_low_for_a_minute():
    said = sentences((0, LOW), (30, LOW), (59, LOW), (60, LOW), (61, LOW), (200, LOW))
    assert [sentence is not None for sentence in said] == [False, False, False, True, False, False]
    assert "worth 50% of its samples" in said[3]


@pytest.mark.parametrize("between", [HIGH])
def test_a_minute_begins_anew_where_it_was_high(between):
    assert sentences((0, LOW), (50, between), (55, LOW), (100, LOW)) == [None] * 4
    assert sentences((0, LOW), (50, between), (55, LOW), (115, LOW))[-1] is not None


def test_data_that_is_not_trained_on_is_said_though_it_has_no_effective_sample_size():
    masked = {"masked_share": 0.9, "lag_mean": 1120.0}
    assert sentences((0, masked), (30, {}), (59, masked)) == [None] * 3
    sentence = sentences((0, masked), (30, {}), (60, masked))[-1]
    assert sentence.startswith("90% of the data of the last minute was too old to be trained on: try --rollout auto ")
    assert sentence.endswith(" or fewer --num_envs_per_worker or a --max_policy_lag above 1000")
    some = {**HIGH, "masked_share": 0.4}
    assert sentences((0, some), (60, some), (120, some)) == [None] * 3


def test_a_report_without_a_figure_changes_nothing_that_is_said():
    assert sentences((0, {}), (100, {})) == [None, None]


KL = {**FLAGS, "lr_schedule": "kl_adaptive"}
PBT = {**FLAGS, "with_pbt": True, "num_policies": 2}


@pytest.mark.parametrize(
    ("lag", "flags", "has_auto_sizes", "remedy"),
    [
        (
            240,
            FLAGS,
            False,
            ", and is 3.0 iterations old: try --rollout auto --batch_size auto or fewer --num_envs_per_wor",
        ),
        (240, FLAGS, True, ", and is 3.0 iterations old: try fewer --num_envs_per_worker"),
        (80, FLAGS, True, ": try a lower --learning_rate or fewer --num_epochs or --lr_schedule kl_adaptive"),
        (80, KL, True, ": try a lower --learning_rate or fewer --num_epochs"),
        (80, PBT, True, ": try a lower --learning_rate or fewer --num_epochs"),
        (1, {"batch_size": 64}, False, ": try a lower --learning_rate or --lr_schedule kl_adaptive"),
    ],
)
def test_the_remedy_is_what_the_run_does_not_have_yet(lag, flags, has_auto_sizes, remedy):
    low = LOW | {"lag_mean": float(lag)}
    said = sentences((0, low), (60, low), flags=flags, has_auto_sizes=has_auto_sizes)[-1]
    assert f"(effective sample size){remedy}" in said
    assert remedy.endswith("wor") or said.endswith(remedy)
