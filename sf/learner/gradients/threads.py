"""CPU threads for a learner whose steps are a program, for which gradient workers have nothing to do."""

from __future__ import annotations

import torch

from sf.learner.gradients.share import Share

_MOST = 4  # a minibatch of some hundred samples keeps no more of them busy


class Threads:
    """As many as make the learner faster: those that it has, or up to `most` where the sampler leaves cores idle.

    `Share` decides, with threads for workers: a share of 3/4 is 4 threads.
    """

    def __init__(self, most: int) -> None:
        """most: that there are cores for. The calling process has as many already as it is to have at least."""
        self._at_least = torch.get_num_threads()
        most = max(self._at_least, min(_MOST, most))
        self._share = Share(1 - self._at_least / most)

    def measured(self, num_steps: int, busy_s: float, for_batch_s: float) -> None:
        """Of an iteration: optimiser steps, seconds that they took, and those of waiting for its data."""
        self._share.measured(num_steps, busy_s, 0.0, for_batch_s)
        number = round(self._at_least / (1 - self._share.value))
        if number != torch.get_num_threads():
            torch.set_num_threads(number)
