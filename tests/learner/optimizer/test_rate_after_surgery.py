"""The learning rate after surgery: 0 until the moments of new weights are known, then rising."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from sf.config import LearnerConfig
from sf.learner.optimizer.learning_rate import LearningRate, share_after_surgery
from sf.learner.optimizer.optimizer import Optimizer
from sf.learner.training_metrics import TrainingMetrics
from sf.model.normalizers import NoReturnNormalizer

BETAS = 0.9, 0.999


def test_the_first_steps_take_nothing_and_the_share_never_falls():
    shares = [share_after_surgery(n, BETAS) for n in range(1500)]
    assert shares[:20] == [0.0] * 20
    assert 0 < shares[20] < 0.2
    assert np.all(np.diff(shares) >= 0)
    assert shares[1000:] == [1.0] * 500


def test_while_it_rises_a_new_weight_moves_as_far_as_with_moments_that_are_corrected():
    """Adam corrects by its number of steps, which is that of old weights: the correction of new ones is in the rate."""
    beta1, beta2 = BETAS
    rng = np.random.default_rng(0)
    first = second = 0.0
    for n in range(1, 900):
        gradient = rng.normal(1.0, 0.5)
        first, second = beta1 * first + (1 - beta1) * gradient, beta2 * second + (1 - beta2) * gradient**2
        if n > 60:  # then the first moment needs no correction
            corrected = first / (1 - beta1**n) / np.sqrt(second / (1 - beta2**n))
            assert share_after_surgery(n, BETAS) * first / np.sqrt(second) == pytest.approx(corrected, rel=0.01)


@pytest.fixture
def rate():
    config = LearnerConfig(learning_rate=0.5, lr_schedule="kl_adaptive", lr_adaptive_max=1.0, lr_adaptive_max_final=1.0)
    network = nn.Module()
    network.trunk = nn.Linear(2, 2)
    rate = LearningRate(Optimizer(config, network))
    rate.steps_since_surgery = 0
    rate.set(0.5)
    return rate, dataclasses.replace(config, lr_schedule_kl_threshold=0.01)


def test_schedules_go_on_below_the_share_and_kl_adaptive_begins_when_it_is_over(rate):
    rate, config = rate
    metrics = TrainingMetrics()
    metrics.add_step({"approx_kl": torch.tensor(0.0), "num_choices": torch.tensor(1)})
    for _ in range(999):
        assert rate.now == pytest.approx(0.5 * share_after_surgery(rate.steps_since_surgery, BETAS))
        rate.adapt(config, metrics, NoReturnNormalizer())
        assert rate.value == 0.5
        rate.count_step()
    rate.count_step()
    assert rate.steps_since_surgery is None
    assert rate.now == 0.5
    rate.adapt(config, metrics, NoReturnNormalizer())
    assert rate.now == pytest.approx(0.75)
