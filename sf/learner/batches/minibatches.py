"""How the data of an iteration is cut into minibatches: those of one epoch, in random order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from sf.learner.batches.batch import Batch
from sf.learner.batches.priorities import Priorities, draw


class Targets(NamedTuple):
    """What samples are trained towards. Each [T, B], without gradients."""

    value: Tensor  # in the scale of returns
    advantage: Tensor


class Moments(NamedTuple):
    """Of advantages; each 0-dim."""

    mean: Tensor
    stddev: Tensor
    rounding: Tensor  # a standard deviation that the rounding of float32 gives to equal advantages


class Minibatch(NamedTuple):
    """T steps of B trajectories.

    mask: [T, B] bool, the samples to train on. proximal_log_prob: [T, B], of the policy that the loss is to stay close
    to, see `decoupled_clip`. targets: None where each step makes them from its own forward pass. advantage_moments: to
    normalise advantages by; None where each step takes those of its own samples. priorities: of the trajectories; None
    where all are alike.
    """

    batch: Batch
    mask: Tensor
    proximal_log_prob: Tensor
    targets: Targets | None = None
    advantage_moments: Moments | None = None
    priorities: Priorities | None = None


class Cut(NamedTuple):
    """Where a minibatch lies in its iteration. at: indices of single steps [M] among all T x B where the iteration has
    targets, else of trajectories [b]; None: all of it."""

    whole: Minibatch
    at: Tensor | None

    def taken(self) -> Minibatch:
        """A copy of what lies there."""
        if self.at is None:
            return self.whole
        if self.whole.targets is None:
            return _trajectories(self.whole, self.at)
        return steps_of(self.whole, self.whole.targets, self.at)


def cut(whole: Minibatch, count: int) -> Iterator[Cut]:
    """The minibatches of one epoch: single steps where their targets are made, else whole trajectories.

    With priorities, trajectories are drawn with replacement, as many as there are.
    """
    if whole.targets is not None:
        parts: Iterable[Tensor | None] = _order_of_steps(whole.batch, count).tensor_split(count)
    else:
        parts = [None] if count == 1 else _order(whole).chunk(count)
    return (Cut(whole, part) for part in parts)


def steps_of(whole: Minibatch, of_whole: Targets, at: Tensor) -> Minibatch:
    """The single steps at `at` [M]: for a network without memory, `Batch.steps` says what T and B mean then."""
    mask, proximal_log_prob, value, advantage = (
        x.flatten().index_select(0, at)[:, None] for x in (whole.mask, whole.proximal_log_prob, *of_whole)
    )
    targets = Targets(value, advantage)
    return Minibatch(whole.batch.steps(at), mask, proximal_log_prob, targets, whole.advantage_moments)


def _trajectories(whole: Minibatch, columns: Tensor) -> Minibatch:
    mask, proximal_log_prob = (x.index_select(1, columns) for x in (whole.mask, whole.proximal_log_prob))
    part = whole._replace(batch=whole.batch.columns(columns), mask=mask, proximal_log_prob=proximal_log_prob)
    if whole.priorities is not None:
        part = part._replace(priorities=Priorities(*(x.index_select(0, columns) for x in whole.priorities)))
    return part


def _order(whole: Minibatch) -> Tensor:
    """Of the trajectories of an epoch, [B]. The random numbers are the host's, whose state checkpoints keep."""
    num_trajectories, device = whole.batch.num_trajectories, whole.mask.device
    if whole.priorities is None:
        return torch.randperm(num_trajectories).to(device)
    return draw(whole.priorities.probability, torch.rand(num_trajectories, dtype=torch.float64).to(device))


def _order_of_steps(batch: Batch, at_least: int) -> Tensor:
    """Of the steps of an epoch, as indices among all T x B. Those in which an agent waits for its turn are left out."""
    order, acts = torch.randperm(batch.num_samples).to(batch.reward.device), batch.acts()
    if acts is None:
        return order
    decisions = order[acts[:-1].flatten()[order]]
    return decisions if len(decisions) >= at_least else order
