"""The term of searches has the size of a cross-entropy over all choices, however many there are."""

import math

import pytest
import torch

from sf.config import LearnerConfig
from sf.envs import ActionSpec
from sf.learner.loss.minibatch_loss import loss_settings
from sf.learner.loss.numbers import LossNumbers
from sf.learner.loss.ppo import ppo_loss
from sf.learner.loss.terms.table import terms_of
from sf.model.distributions import ActionDistribution
from sf.shared.rows import FULLY_SEARCHED, SEARCHED

CONFIG = LearnerConfig(
    algorithm="search",
    policy_loss_coeff=0.0,
    exploration_loss_coeff=0.0,
    with_vtrace=False,
    ppo_clip_value=0.0,
    normalize_advantages=False,
)


def loss_of(num_actions, value_error=0.0, is_full=(True, True)):
    """Returns the loss and the gradients of the logits, where the search is sure of a choice and the policy is not."""
    logits = torch.zeros(1, 2, num_actions, requires_grad=True)
    searched = torch.full((1, 2, num_actions), -1e9)
    searched[..., 0] = 0.0
    zeros, target = torch.zeros(1, 2), torch.full((1, 2), value_error)
    numbers = LossNumbers.of(CONFIG)
    result = ppo_loss(
        *(zeros, zeros, zeros, zeros, zeros, zeros, zeros, target, target),
        torch.ones(1, 2, dtype=torch.bool),
        settings=loss_settings(CONFIG, numbers),
        coefficients=numbers.coefficients,
        terms=terms_of(CONFIG),
        fields={SEARCHED: searched, FULLY_SEARCHED: torch.tensor([is_full])},
        policy=ActionDistribution(ActionSpec((num_actions,), 0), logits),
    )
    (gradient,) = torch.autograd.grad(result.loss, logits)
    return result, gradient


@pytest.mark.parametrize("num_actions", [2, 7, 362])
def test_the_policy_is_not_divided_by_the_number_of_choices(num_actions):
    """A mean over 362 choices in the place of their sum once drowned the policy of a Go program in its value."""
    result, gradient = loss_of(num_actions)
    assert float(result.metrics["search/kl"]) == pytest.approx(math.log(num_actions), rel=1e-5)
    # Of each of two samples: softmax(logits) - search.
    assert float(gradient[0, 0, 0]) == pytest.approx((1 / num_actions - 1) / 2, rel=1e-4)


def test_a_game_that_was_lost_for_certain_weighs_less_than_a_choice_in_go_that_was_missed():
    of_policy, _ = loss_of(362)
    of_both, _ = loss_of(362, value_error=1.0)
    of_value = float((of_both.loss - of_policy.loss).detach())
    assert of_value == pytest.approx(CONFIG.value_loss_coeff)
    assert of_value < float(of_policy.loss.detach())


def test_moves_that_were_searched_quickly_train_the_value_alone():
    result, gradient = loss_of(7, value_error=1.0, is_full=(True, False))
    assert not gradient[0, 1].any()
    assert float(gradient[0, 0, 0]) == pytest.approx(1 / 7 - 1, rel=1e-4)  # the mean is over the other one
    assert float(result.metrics["search/kl"]) == pytest.approx(math.log(7), rel=1e-5)
    assert float(result.metrics["value_loss"]) == pytest.approx(1.0)
