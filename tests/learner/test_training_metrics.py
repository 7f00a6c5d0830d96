"""Means over optimiser steps: what a step without a sample says counts nowhere."""

import math

import pytest
import torch

from sf.learner.training_metrics import TrainingMetrics


def step(num_samples, **values):
    values = {"num_samples": num_samples, "num_choices": num_samples, **values}
    return {name: torch.tensor(float(value)) for name, value in values.items()}


def test_means_are_of_the_steps_that_had_samples():
    metrics = TrainingMetrics()
    metrics.add_step(step(4, effective_sample_size=0.99, entropy=1.0))
    metrics.add_step(step(0, effective_sample_size=0.0, entropy=0.0))
    metrics.add_step(step(2, effective_sample_size=math.nan, entropy=2.0))
    metrics.add_iteration({"lag_mean": torch.tensor(3.0), "lag_max": torch.tensor(5)})
    metrics.add_iteration({"lag_mean": torch.tensor(1.0), "lag_max": torch.tensor(7)})
    expected = {
        "num_samples": 2.0,
        "num_choices": 2.0,
        "effective_sample_size": 0.99,
        "entropy": 1.5,
        "lag_mean": 2.0,
        "lag_max": 7.0,
    }
    assert metrics.pop() == pytest.approx(expected)
    assert metrics.pop() == {}


def test_means_of_the_policy_are_of_the_steps_in_which_somebody_had_a_choice():
    metrics = TrainingMetrics()
    metrics.add_step(step(4, num_choices=3, effective_sample_size=0.99, entropy=0.6, value_loss=1.0))
    metrics.add_step(step(4, num_choices=0, effective_sample_size=0.0, entropy=0.0, value_loss=3.0))
    expected = {
        "num_samples": 4.0,
        "num_choices": 1.5,
        "effective_sample_size": 0.99,
        "entropy": 0.6,
        "value_loss": 2.0,
    }
    assert metrics.pop() == pytest.approx(expected)


def test_a_name_is_missing_where_no_step_had_samples():
    metrics = TrainingMetrics()
    metrics.add_step(step(0, entropy=0.0))
    assert metrics.pop() == {"num_samples": 0.0, "num_choices": 0.0}


def test_the_mean_of_the_last_steps_is_that_over_their_samples_with_a_choice():
    metrics = TrainingMetrics()
    for num_samples, num_choices, kl in ((9, 9, 9.0), (7, 3, 0.1), (7, 0, 0.0), (1, 1, 0.5)):
        metrics.add_step(step(num_samples, num_choices=num_choices, approx_kl=kl))
    assert metrics.mean_of_last(3, "approx_kl") == pytest.approx((3 * 0.1 + 0.5) / 4)
    metrics.add_step(step(7, num_choices=0, approx_kl=0.0))
    assert metrics.mean_of_last(1, "approx_kl") is None
