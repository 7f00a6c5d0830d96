"""What takes optimiser steps in the place of PyTorch's operations: a program on a CPU, a recording on a GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Tensor

from sf.config import LearnerConfig
from sf.learner.batches.minibatches import Cut, Minibatch
from sf.learner.loss.numbers import LossNumbers
from sf.learner.optimizer.optimizer import Optimizer

Take = Callable[[Minibatch, LossNumbers | None], dict[str, Tensor]]
"""An optimiser step by PyTorch's operations: of a minibatch, with the numbers of the loss; None: as configured.
Returns the results of `sf.learner.compiled.training_step.results_of` by name."""


class FasterStep(ABC):
    """Two networks that are served, one after the other, have the same configuration."""

    @abstractmethod
    def serve(self, network: Any, optimizer: Optimizer) -> None:
        """Take the steps of these from here on."""

    @abstractmethod
    def takes(self, cut: Cut, config: LearnerConfig) -> bool:
        """Whether it takes the step of this minibatch, with these settings. Asked once before each step."""

    @abstractmethod
    def step(self, cut: Cut, numbers: LossNumbers, take: Take) -> dict[str, Tensor]:
        """Take the optimiser step of a minibatch that it `takes`, and return its results by name.

        numbers: of the loss. take: takes the step otherwise. The first time, both are compared.
        """

    @property
    def is_at_work(self) -> bool:
        """Whether it takes the steps at present, and leaves nothing for gradient workers."""
        return False

    def look(self) -> None:  # noqa: B027  a recording is made at once
        """Called before each iteration, to see to what is made beside the learner."""

    def measured(self, num_steps: int, busy_s: float, for_batch_s: float) -> None:  # noqa: B027
        """An iteration is done: its optimiser steps, the seconds that they took, and those of waiting for its data."""

    def close(self) -> None:  # noqa: B027
        """The learner ends."""
