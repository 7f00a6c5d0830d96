"""Lines and bands against slow loops next to the formula."""

import math
import statistics

import numpy as np
import pytest

from sf.tools.report.curves import Curve, band, curve, running_mean


def random_curve(rng, num_records, begin=0.0, end=100.0):
    x = np.sort(rng.uniform(begin, end, num_records))
    return Curve(x, rng.normal(size=num_records).cumsum())


def slow_mean(line, at, window):
    """The mean of the polygon over the centred window, from many points of it."""
    reach = min(window / 2, at - line.x[0], line.x[-1] - at)
    inside = np.linspace(at - reach, at + reach, 20_001)
    return np.interp(inside, line.x, line.y)[:-1].mean() if reach > 0 else np.interp(at, line.x, line.y)


@pytest.mark.parametrize("window", [0.0, 0.5, 7.0, 1000.0])
@pytest.mark.parametrize("num_records", [2, 3, 40])
def test_the_running_mean_is_that_of_the_polygon(num_records, window):
    rng = np.random.default_rng(num_records)
    line = random_curve(rng, num_records)
    at = np.concatenate([line.x, rng.uniform(line.x[0], line.x[-1], 50)])
    mean = running_mean(line, at, window)
    assert mean.shape == at.shape
    np.testing.assert_allclose(mean, [slow_mean(line, point, window) for point in at], atol=2e-3)


def test_a_running_mean_keeps_straight_lines_and_both_ends():
    x = np.array([0.0, 1.0, 5.0, 6.0, 10.0])
    at = np.linspace(0.0, 10.0, 41)
    np.testing.assert_allclose(running_mean(Curve(x, 3 * x + 1), at, 4.0), 3 * at + 1)
    jagged = Curve(x, np.array([5.0, -5.0, 5.0, -5.0, 7.0]))
    assert running_mean(jagged, np.array([0.0, 10.0]), 4.0).tolist() == [5.0, 7.0]


def test_beyond_its_ends_a_curve_has_no_value():
    line = Curve(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert np.isnan(running_mean(line, np.array([0.9, 2.1]), 0.5)).all()
    assert np.isnan(running_mean(Curve(np.empty(0), np.empty(0)), np.array([1.0]), 0.5)).all()


def test_large_values_lose_no_digits_to_the_integral():
    x = np.arange(1000.0) * 1e7
    line = Curve(x, 1e6 + np.sin(x))
    at = np.linspace(x[0], x[-1], 300)
    expected = [slow_mean(line, point, 3e8) for point in at]
    np.testing.assert_allclose(running_mean(line, at, 3e8), expected, atol=1e-2)


@pytest.mark.parametrize("num_runs", [1, 2, 3, 8])
def test_a_band_is_the_mean_and_the_t_interval_of_the_runs_that_are_there(num_runs):
    rng = np.random.default_rng(num_runs)
    lines = [random_curve(rng, 30, end=rng.uniform(50, 100)) for _ in range(num_runs)]
    drawn = band(lines, window=5.0, num_points=57)
    assert all(values.shape == (57,) for values in drawn)
    assert drawn.x[0] == max(line.x[0] for line in lines)
    assert drawn.x[-1] == max(line.x[-1] for line in lines)
    for idx, at in enumerate(drawn.x):
        values = [running_mean(line, np.array([at]), 5.0)[0] for line in lines if line.x[0] <= at <= line.x[-1]]
        assert drawn.num_runs[idx] == len(values)
        assert drawn.mean[idx] == pytest.approx(statistics.fmean(values))
        if len(values) < 2:
            assert math.isnan(drawn.low[idx])
            assert math.isnan(drawn.high[idx])
        else:
            quantile = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}[len(values)]
            error = quantile * statistics.stdev(values) / math.sqrt(len(values))
            assert drawn.low[idx] == pytest.approx(statistics.fmean(values) - error)
            assert drawn.high[idx] == pytest.approx(statistics.fmean(values) + error)


def test_runs_that_agree_have_no_interval():
    lines = [Curve(np.array([end, 11.0, 20.0 + end]), np.array([500.0, 500.0, 500.0 + end])) for end in (0.1, 3.0)]
    drawn = band(lines, window=0.7, num_points=5)
    assert np.isnan(np.stack([drawn.low, drawn.high])).tolist() == 2 * [[True, True, False, False, True]]


def test_a_curve_leaves_out_what_is_not_known_and_what_a_restart_undid():
    records = [
        {"env_steps": 0, "mean_return": None},
        {"env_steps": 10, "mean_return": 1.0},
        {"env_steps": 20, "mean_return": 2.0},
        {"env_steps": 30, "mean_return": math.nan},
        {"env_steps": 40, "mean_return": 4.0},
        {"env_steps": 15, "mean_return": 1.5},  # back to a checkpoint
        {"env_steps": 15, "mean_return": 1.6},
        {"mean_return": 9.0},
    ]
    line = curve(records, "env_steps", "mean_return")
    assert line.x.tolist() == [10, 15]
    assert line.y.tolist() == [1.0, 1.6]
    assert curve(records, "seconds", "mean_return").x.shape == (0,)


def test_a_restart_undoes_what_came_after_its_checkpoint_before_it_knows_any_return():
    records = [
        {"env_steps": 10, "mean_return": 1.0},
        {"env_steps": 30, "mean_return": 3.0},
        {"env_steps": 20, "mean_return": None},
        {"env_steps": 40, "mean_return": 4.0},
        {"env_steps": 40, "mean_return": None},  # resumed from where it had ended
    ]
    line = curve(records, "env_steps", "mean_return")
    assert line.x.tolist() == [10, 40]
    assert line.y.tolist() == [1.0, 4.0]


def test_an_evaluation_lies_at_the_steps_that_it_is_of():
    records = [
        {"env_steps": 100, "env_frames": 400, "seconds": 10.0},
        {"env_steps": 200, "env_frames": 800, "seconds": 30.0, "eval/env_steps": 150, "eval/mean_return": 1.0},
        {"env_steps": 300, "env_frames": 1200, "seconds": 40.0, "eval/env_steps": 300, "eval/mean_return": 2.0},
        {"env_steps": 400, "env_frames": 1600, "seconds": 50.0},
    ]
    for x, places in (("env_steps", [150, 300]), ("env_frames", [600, 1200]), ("seconds", [20.0, 40.0])):
        line = curve(records, x, "eval/mean_return")
        assert line.x.tolist() == places
        assert line.y.tolist() == [1.0, 2.0]
    back = {"env_steps": 200, "env_frames": 800, "seconds": 60.0}  # to a checkpoint
    assert curve([*records, back], "env_steps", "eval/mean_return").x.tolist() == [150]


def test_an_evaluation_of_one_policy_lies_at_the_steps_of_all_where_it_had_its_own():
    records = [
        {
            "env_steps": 100 * i,
            "policy_01/env_steps": 30 * i,
            "policy_01/eval/env_steps": 30 * i - 15,
            "policy_01/eval/mean_return": i,
        }
        for i in (1, 2, 3)
    ]
    line = curve(records, "env_steps", "policy_01/eval/mean_return")
    assert line.x.tolist() == [100, 150, 250]  # before the first record nothing is known
    assert line.y.tolist() == [1, 2, 3]
