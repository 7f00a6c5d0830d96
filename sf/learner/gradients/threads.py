"""CPU threads for a learner whose steps are a program, for which gradient workers have nothing to do."""

from __future__ import annotations

import math

import torch

from sf.learner.gradients.share import Share

MOST_THREADS = 4  # an operation of a learner is not much faster with more


class Threads:
    """As many as make the learner faster: those that it has, or up to `most` where the sampler leaves cores idle.

    `Share` decides, of which 1 is one thread more.
    """

    def __init__(self, most: int) -> None:
        """most: that there are cores for. The calling process has as many already as it is to have at least."""
        self._at_least = torch.get_num_threads()
        self._spare = max(0, min(MOST_THREADS, most) - self._at_least)
        self._share = Share(most=float(self._spare))

    def rest(self) -> None:
        """Give back what was taken, where something else takes the steps now."""
        self._share = Share(most=float(self._spare))
        torch.set_num_threads(self._at_least)

    def measured(self, num_steps: int, busy_s: float, for_batch_s: float) -> None:
        """Of an iteration: optimiser steps, seconds that they took, and those of waiting for its data."""
        self._share.measured(num_steps, busy_s, 0.0, for_batch_s)
        number = self._at_least + math.ceil(self._share.value)
        if number != torch.get_num_threads():
            torch.set_num_threads(number)
