"""The learning rate: how it follows the KL divergence, and the ceiling that rollbacks put on it.

The only state is the present rate, the ceiling and the steps since surgery, which the learner keeps in its checkpoint:
resuming is exact.
"""

from __future__ import annotations

import math

from sf.config import LearnerConfig
from sf.learner.optimizer.optimizer import Optimizer
from sf.learner.training_metrics import TrainingMetrics
from sf.model.normalizers import ReturnNormalizer
from sf.model.task_returns import ValueNorm

KL_ADAPTIVE_FACTOR = 1.5


def kl_adaptive(rate: float, kl: float, threshold: float, minimum: float, maximum: float) -> float:
    """The rate after an iteration in which a KL divergence of `kl` nats was measured, as `--lr_schedule` says.

    Divided by 1.5 where that is above twice the threshold, multiplied by 1.5 where it is below half of it; the band
    between keeps the rate from oscillating. Schulman et al. 2017, section 4, adapt their penalty by the same rule. A kl
    that is NaN leaves the rate as it is. The result is within [minimum, maximum], which may have changed.
    """
    if kl > 2.0 * threshold:
        rate /= KL_ADAPTIVE_FACTOR
    elif kl < 0.5 * threshold:
        rate *= KL_ADAPTIVE_FACTOR
    return min(max(rate, minimum), maximum)


def advantage_scale(advantage_stddev: float, return_stddev: float, full_share: float) -> float:
    """Which part of a full step advantages are worth, from 0 to 1: 1 from `full_share` of the returns' deviation on.

    Both deviations are in the scale of returns. What normalised advantages leave to Adam is their direction alone,
    whether they are half of what can be won or the errors of a critic that knows all: the size of a step has to come
    from here. It falls with their square: what a step can win falls with them, and so does the part of them that is no
    error. 1 where full_share is 0, or a number is NaN.
    """
    if full_share == 0 or return_stddev == 0:
        return 1.0
    return min(1.0, advantage_stddev / (full_share * return_stddev)) ** 2


def share_after_surgery(num_steps: int, betas: tuple[float, float]) -> float:
    """The share of the rate that is taken in the step after `num_steps` with moments of new weights, which began at 0
    beside old ones. betas: of Adam.

    It is 0 until the first moments are means over enough gradients. From then on it is what Adam's correction of the
    second moment would be for these weights (Kingma and Ba 2015, section 3), so that their steps are not too large. It
    ends at 1, once the second moments are means over as many gradients as they can hold.
    """
    beta1, beta2 = betas
    if num_steps < round(2 / (1 - beta1)):
        return 0.0
    return math.sqrt(1 - beta2**num_steps) if num_steps < round(1 / (1 - beta2)) else 1.0


class LearningRate:
    """The rate of an optimiser. It never exceeds `ceiling`, whatever a schedule asks for.

    value: as schedules set it. steps_since_surgery: optimiser steps since new weights came in, of which the optimiser
    knows nothing, see `share_after_surgery`; None where their moments are known.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.ceiling = math.inf
        self.value = optimizer.learning_rate
        self.steps_since_surgery: int | None = None
        self._optimizer = optimizer

    @property
    def now(self) -> float:
        """What the next step takes."""
        return self._optimizer.learning_rate

    def set(self, rate: float) -> None:
        self.value = min(rate, self.ceiling)
        self._apply()

    def count_step(self) -> None:
        """Call this after each optimiser step."""
        if self.steps_since_surgery is not None:
            self.steps_since_surgery += 1
            self._apply()

    def _apply(self) -> None:
        share = 1.0
        if self.steps_since_surgery is not None:
            share = share_after_surgery(self.steps_since_surgery, self._optimizer.adam_betas)
            if share == 1.0:
                self.steps_since_surgery = None
        self._optimizer.learning_rate = share * self.value

    def adapt(self, config: LearnerConfig, metrics: TrainingMetrics, value_norm: ValueNorm) -> None:
        """Set the rate by how far the policy moved in the minibatches of the last epoch, each before its step.

        It stays while only a share of it is taken. config: with the present values of schedules. metrics: of its steps.
        value_norm: of the network.
        """
        kl = metrics.mean_of_last(config.num_batches_per_epoch, "approx_kl")
        if kl is None or self.steps_since_surgery is not None:
            return  # no step of the last epoch was finite, or they were smaller than the rate says
        threshold, lowest, highest = config.lr_schedule_kl_threshold, config.lr_adaptive_min, config.lr_adaptive_max
        assert highest != "auto"  # see sf.config.auto_values
        assert threshold != "auto"
        worth = _advantage_scale(config, metrics, value_norm)
        self.set(kl_adaptive(self.value, kl, worth * threshold, lowest, max(worth * highest, lowest)))


def _advantage_scale(config: LearnerConfig, metrics: TrainingMetrics, value_norm: ValueNorm) -> float:
    """Returns `advantage_scale` by the advantages of the last epoch."""
    if not config.lr_adaptive_advantage_share or not isinstance(value_norm, ReturnNormalizer):
        return 1.0
    advantage_stddev = metrics.mean_of_last(config.num_batches_per_epoch, "advantage_stddev")
    assert advantage_stddev is not None  # the KL divergence is of the same samples
    return advantage_scale(advantage_stddev, float(value_norm.stddev), config.lr_adaptive_advantage_share)
