"""How much of each minibatch the gradient workers get, or how many threads a compiled step: what is measured decides.

Gradient workers get nothing while the learner waits for batches: then the sampler needs the cores. Where it does not,
they get equal parts; less, where the learner has to wait for them, because their cores have other work; and nothing,
where steps are not faster with them. A learner whose steps are a program has nothing for gradient workers to do, and
its CPU threads are decided on in the same way.
"""

from __future__ import annotations

import math
from collections import deque

import torch

_WINDOW_S = 2.0
_PATIENCE = 3  # windows in a row without use: a machine that others use, too, is slower now and then
_ALONE = 5  # windows without them whose mean is compared with: one alone may be a fast or a slow one
_BEFORE_FIRST_TRIAL = 2  # windows
_REST, _LONGEST_REST = 15, 240  # windows after a trial without use: the first time; twice as many each time after that
_STEPS = 8  # from nothing to equal parts
_FEWEST = 2  # of these: less is not worth the messages
_NOTABLE = 0.05  # a share of the time of the learner
_LITTLE = 0.02
MOST_THREADS = 4  # an operation of a learner is not much faster with more
_WORTH_IT = 0.95  # of the time of a step without them


class Share:
    """value: of a minibatch, for all gradient workers together, from 0 to `most`."""

    def __init__(self, most: float) -> None:
        self.value = 0.0
        self._most = most
        self._windows = 0  # since they were tried, or let go
        self._rest = _BEFORE_FIRST_TRIAL  # windows until they are tried again
        self._next_rest = _REST
        self._alone_s: deque[float] = deque(maxlen=_ALONE)  # of a step without them, in the last windows
        self._without_use = 0  # windows in a row
        self._clear()

    def measured(self, num_steps: int, busy_s: float, for_workers_s: float, for_batch_s: float) -> None:
        """Of an iteration: optimiser steps, seconds that they took, of which waiting for workers; and for its data."""
        self._num_steps += num_steps
        self._busy_s += busy_s
        self._for_workers_s += for_workers_s
        self._for_batch_s += for_batch_s
        if self._busy_s + self._for_batch_s >= _WINDOW_S and self._num_steps:
            self._decide()
            self._clear()

    def _decide(self) -> None:
        seconds = self._busy_s + self._for_batch_s
        for_batch, for_workers = self._for_batch_s / seconds, self._for_workers_s / seconds
        step_s = self._busy_s / self._num_steps
        self._windows += 1
        if self.value == 0:
            self._alone_s.append(step_s)
            if for_batch < _LITTLE and self._windows > self._rest:
                self.value, self._windows, self._without_use = self._most, 0, 0
            return
        if self._windows == 1:
            return  # they had to start up
        if step_s < _WORTH_IT * sum(self._alone_s) / len(self._alone_s):
            self._without_use, self._next_rest = 0, _REST
        else:
            self._without_use += 1
        if self._without_use == _PATIENCE:
            self._let_go(self._next_rest)
            self._next_rest = min(_LONGEST_REST, 2 * self._next_rest)
        elif for_batch > _NOTABLE or for_workers > _NOTABLE:
            self.value -= self._most / _STEPS
            if self.value < _FEWEST * self._most / _STEPS:
                self._let_go(_REST)
        elif for_batch < _LITTLE:
            self.value = min(self._most, self.value + self._most / _STEPS)

    def _let_go(self, rest: int) -> None:
        self.value, self._windows, self._rest = 0.0, 0, rest

    def _clear(self) -> None:
        self._num_steps = 0
        self._busy_s = self._for_workers_s = self._for_batch_s = 0.0


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
