"""New choices, the scale of values, and what is lost."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from patients import SMALL, box, operate, patient, resumed, spec_of

from sf.config import Config
from sf.surgery.comparison import Pair
from sf.surgery.outputs import bias_for, loss
from sf.surgery.recent import Recent
from sf.surgery.subject import Subject

VECTOR, TWO = {"obs": box(5)}, gym.spaces.Discrete(2)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8), st.integers(1, 5), st.floats(0.001, 0.9))
def test_new_choices_have_their_probability_in_the_mean_over_the_states(log_sums, num_new, probability):
    bias = bias_for(torch.tensor(log_sums, dtype=torch.float64), num_new, probability)
    new = [num_new * np.exp(bias) / (num_new * np.exp(bias) + np.exp(each)) for each in log_sums]
    np.testing.assert_allclose(np.mean(new), probability, rtol=1e-6)


def test_moments_of_the_value_head_move_to_the_scale_of_returns():
    saved = patient(VECTOR, TWO, normalize_returns=True)
    updater, _ = resumed(saved, VECTOR, TWO)
    stddev = float(updater.model.value_norm.stddev)
    made = operate(saved, VECTOR, TWO, normalize_returns=False).checkpoint()
    for key, power in (("exp_avg", 1), ("exp_avg_sq", 2)):
        for name in ("value_head.weight", "value_head.bias"):
            where = f"optimizer/{name}/{key}"
            torch.testing.assert_close(made.tensors[where], saved.tensors[where] * stddev**power)


def test_the_optimiser_waits_for_moments_of_new_weights_and_for_nothing_else():
    saved = patient(VECTOR, TWO)
    assert operate(saved, {"obs": box(6)}, TWO).state()["updater"]["steps_since_surgery"] == 0
    assert operate(saved, VECTOR, TWO, normalize_returns=True).state()["updater"]["steps_since_surgery"] is None


def test_what_is_removed_is_not_measured_where_no_environment_shows_it():
    saved = patient(VECTOR, TWO)
    operated = operate(saved, {"obs": box(4)}, TWO, request={"is_inexact": True})
    assert operated.loss is None  # there is no such environment


@pytest.mark.parametrize("size", [3, 5])
def test_a_new_head_begins_uniform(size):
    made = operate(patient(VECTOR, TWO), VECTOR, gym.spaces.MultiDiscrete([2, size])).checkpoint()
    assert not made.tensors["model/policy_head.weight"][2:].any()
    assert not made.tensors["model/policy_head.bias"][2:].any()


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def test_what_is_lost_is_the_divergence_among_what_is_left_beside_what_is_gone():
    config = Config().replace(**SMALL)
    old, new = (
        Subject.of_spec(config.model, spec_of(VECTOR, gym.spaces.Tuple(parts), config), ())
        for parts in ((gym.spaces.Discrete(4), box(2)), (gym.spaces.Discrete(3), box(1), gym.spaces.Discrete(2)))
    )
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(5, 4 + 2 * 2)), rng.normal(size=(5, 3 + 2 + 2 * 1))
    values = rng.normal(size=(2, 5))
    recent = Recent(*(torch.from_numpy(each).float() for each in (before, after, *values)))
    kl, dropped = [], []
    for row, new_row in zip(before, after, strict=True):
        p, q = softmax(row[:3]), softmax(new_row[:3])
        mean, log_stddev, new_mean, new_log_stddev = row[4], row[6], new_row[5], new_row[6]
        spread = (np.exp(2 * log_stddev) + (mean - new_mean) ** 2) / (2 * np.exp(2 * new_log_stddev))
        kl.append(sum(p * np.log(p / q)) + new_log_stddev - log_stddev + spread - 0.5)
        dropped.append(softmax(row[:4])[3])
    found = loss(Pair(old, None, new, None), recent)
    expected = np.mean(kl), np.mean(dropped), np.sqrt(np.mean((values[1] - values[0]) ** 2)), values[0].std(), 5
    np.testing.assert_allclose(found, expected, rtol=1e-5)
