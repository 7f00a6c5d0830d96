"""The learning rate: its schedules, and the ceiling that rollbacks put on it.

The only state is the present rate and the ceiling, which the learner keeps in its checkpoint: resuming is exact.
"""

from __future__ import annotations

import math

from sf.config import LearnerConfig
from sf.learner.optimizer.optimizer import Optimizer
from sf.learner.training_metrics import TrainingMetrics
from sf.model.normalizers import ReturnNormalizer
from sf.model.task_returns import ValueNorm

KL_ADAPTIVE_FACTOR = 1.5


def linear(initial: float, share_done: float, final: float = 0.0) -> float:
    """From `initial` at the start of the run to `final` at its end. share_done: of the run, from 0 to 1."""
    return initial * (1.0 - share_done) + final * share_done


def held(initial: float, share_done: float, final: float, hold: float) -> float:
    """`initial` for the share `hold` of the run, then linearly to `final` at its end."""
    return linear(initial, max(0.0, (share_done - hold) / (1.0 - hold)), final)


def cosine(initial: float, share_done: float) -> float:
    """Half a cosine from `initial` down to 0: Loshchilov and Hutter 2017 (SGDR), equation 5 with one period and a
    minimum of 0.

    It is above the linear schedule in the first half of the run, and below it in the second.
    """
    return initial * 0.5 * (1.0 + math.cos(math.pi * share_done))


TO_THE_END = {"linear": linear, "cosine": cosine}  # schedules that reach 0 where the run ends


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


class LearningRate:
    """The rate of an optimiser. It never exceeds `ceiling`, whatever a schedule asks for."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.ceiling = math.inf
        self._optimizer = optimizer

    @property
    def value(self) -> float:
        return self._optimizer.learning_rate

    def set(self, rate: float) -> None:
        self._optimizer.learning_rate = min(rate, self.ceiling)

    def adapt(self, config: LearnerConfig, share_done: float, metrics: TrainingMetrics, value_norm: ValueNorm) -> None:
        """Set the rate by how far the policy moved in the minibatches of the last epoch, each before its step.

        share_done: of the run. metrics: of its steps. value_norm: of the network.
        """
        kl = metrics.mean_of_last(config.num_batches_per_epoch, "approx_kl")
        if kl is None:
            return  # no step of the last epoch was finite
        threshold, final = config.lr_schedule_kl_threshold, config.lr_adaptive_max_final
        lowest, highest = config.lr_adaptive_min, config.lr_adaptive_max
        assert highest != "auto"  # see sf.config.auto_values
        assert threshold != "auto"
        assert final != "auto"
        if final is not None:
            highest = held(highest, share_done, final, config.lr_adaptive_max_hold)
        worth = _advantage_scale(config, metrics, value_norm)
        self.set(kl_adaptive(self.value, kl, worth * threshold, lowest, max(worth * highest, lowest)))


def _advantage_scale(config: LearnerConfig, metrics: TrainingMetrics, value_norm: ValueNorm) -> float:
    """Returns `advantage_scale` by the advantages of the last epoch."""
    if not config.lr_adaptive_advantage_share or not isinstance(value_norm, ReturnNormalizer):
        return 1.0
    advantage_stddev = metrics.mean_of_last(config.num_batches_per_epoch, "advantage_stddev")
    assert advantage_stddev is not None  # the KL divergence is of the same samples
    return advantage_scale(advantage_stddev, float(value_norm.stddev), config.lr_adaptive_advantage_share)
