"""The numbers of the loss that may change from one iteration to the next.

They are inputs of compiled and recorded steps, which stay in use while `--anneal` or evolution changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.loss.terms.table import coefficients_of, terms_of


class LossNumbers(NamedTuple):
    """Each is a float, or a 0-dim tensor. coefficients: of the terms, in their order; also a tensor [number of terms].

    The others are the flags of these names.
    """

    gamma: float | Tensor
    gae_lambda: float | Tensor
    reward_scale: float | Tensor
    ppo_clip_ratio: float | Tensor
    intrinsic_coeff: float | Tensor
    coefficients: Sequence[float] | Tensor

    @classmethod
    def of(cls, config: LearnerConfig) -> LossNumbers:
        return cls(**{name: getattr(config, name) for name in _FLAGS}, coefficients=coefficients_of(config))

    def flat(self) -> list[float]:
        """Returns all of them as floats, the coefficients last."""
        *flags, coefficients = self
        return [float(number) for number in (*flags, *coefficients)]

    @classmethod
    def from_flat(cls, numbers: Tensor) -> LossNumbers:
        """Returns views of a tensor of what `flat` returns."""
        flags = dict(zip(_FLAGS, numbers.unbind(), strict=False))
        return cls(**flags, coefficients=numbers[len(_FLAGS) :])


_FLAGS = LossNumbers._fields[:-1]
_HOW_THEY_CHANGE = (
    "learning_rate",
    "lr_adaptive_max",
    "exploration_loss_coeff_final",
    "exploration_loss_coeff_extra",
)


def without_numbers(config: LearnerConfig) -> str:
    """Returns the same text for two configurations that differ in learning rates and in these numbers alone, or in how
    they change."""
    names = {*_FLAGS, *_HOW_THEY_CHANGE, *(term.coefficient for term in terms_of(config))}
    return repr({name: value for name, value in vars(config).items() if name not in names})
