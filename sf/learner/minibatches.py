"""How the data of an iteration is cut into minibatches: those of one epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from sf.learner.batch import Batch
from sf.learner.targets import Targets


class Minibatch(NamedTuple):
    """T steps of B trajectories. mask: [T, B] bool, the samples to train on."""

    batch: Batch
    mask: Tensor
    targets: Targets | None  # None: the step makes them from its own forward pass, and is the only one


def shuffled(whole: Minibatch, count: int, has_memory: bool) -> Iterator[Minibatch]:
    """All of it in random order, in `count` parts of one size.

    Whole trajectories for a network with memory. One without it sees single steps, which are less alike than neighbours
    in time: what T and B mean then, says `Batch.steps`.
    """
    batch, mask, targets = whole
    assert targets is not None
    device = mask.device
    if count == 1:
        yield whole
    elif has_memory:
        for columns in torch.randperm(batch.num_trajectories).to(device).chunk(count):
            parts = Targets(*(tensor.index_select(1, columns) for tensor in targets))
            yield Minibatch(batch.columns(columns), mask.index_select(1, columns), parts)
    else:
        for steps in torch.randperm(batch.num_samples).to(device).chunk(count):
            parts = Targets(*(tensor.flatten().index_select(0, steps)[:, None] for tensor in targets))
            yield Minibatch(batch.steps(steps), mask.flatten().index_select(0, steps)[:, None], parts)
