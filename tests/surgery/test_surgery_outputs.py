"""New choices, the scale of values, and what is lost."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from patients import box, operate, patient, resumed

from sf.surgery.outputs import bias_for

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


def test_what_is_removed_is_measured_where_the_environment_still_shows_it(monkeypatch):
    saved = patient(VECTOR, TWO)
    operated = operate(saved, {"obs": box(4)}, TWO, request={"is_inexact": True})
    assert operated.loss is None  # there is no such environment


@pytest.mark.parametrize("size", [3, 5])
def test_a_new_head_begins_uniform(size):
    made = operate(patient(VECTOR, TWO), VECTOR, gym.spaces.MultiDiscrete([2, size])).checkpoint()
    assert not made.tensors["model/policy_head.weight"][2:].any()
    assert not made.tensors["model/policy_head.bias"][2:].any()
