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
    where all are alike. teammates: see `sf.learner.loss.targets.make_targets`.
    """

    batch: Batch
    mask: Tensor
    proximal_log_prob: Tensor
    targets: Targets | None = None
    advantage_moments: Moments | None = None
    priorities: Priorities | None = None
    teammates: Tensor | None = None


class Cut(NamedTuple):
    """Where a minibatch lies in its iteration. at: indices of single steps [M] among all T x B where the iteration has
    targets, else of trajectories [b]; None: all of it. num_together: A, of which none is without the A - 1 beside it:
    they are of the agents of one environment."""

    whole: Minibatch
    at: Tensor | None
    num_together: int = 1

    def taken(self) -> Minibatch:
        """A copy of what lies there."""
        if self.at is None:
            return self.whole
        if self.whole.targets is None:
            return _trajectories(self.whole, self.at)
        return steps_of(self.whole, self.whole.targets, self.at.view(-1, self.num_together))


def cut(whole: Minibatch, count: int, num_together: int = 1) -> Iterator[Cut]:
    """The minibatches of one epoch: single steps where their targets are made, else whole trajectories.

    num_together: see `Cut`; B is a multiple of it. With priorities, trajectories are drawn with replacement, as many as
    there are.
    """
    if whole.targets is not None:
        parts: Iterable[Tensor | None] = _order_of_steps(whole.batch, count, num_together).tensor_split(count)
    else:
        parts = [None] if count == 1 else _order(whole, num_together).chunk(count)
    return (Cut(whole, None if part is None else of_all(part, num_together), num_together) for part in parts)


def of_all(index: Tensor, num_together: int) -> Tensor:
    """Returns the indices [M x A] of what stands together, from those of the groups [M] of A that it makes."""
    if num_together == 1:
        return index
    return (index[:, None] * num_together + torch.arange(num_together, device=index.device)).flatten()


def steps_of(whole: Minibatch, of_whole: Targets, at: Tensor) -> Minibatch:
    """The single steps at `at` [M, A]: for a network without memory, `Batch.steps` says what T and B mean then."""
    mask, proximal_log_prob, value, advantage = (
        x.flatten().index_select(0, at.flatten()).view(at.shape)
        for x in (whole.mask, whole.proximal_log_prob, *of_whole)
    )
    targets = Targets(value, advantage)
    return Minibatch(whole.batch.steps(at), mask, proximal_log_prob, targets, whole.advantage_moments)


def _trajectories(whole: Minibatch, columns: Tensor) -> Minibatch:
    mask, proximal_log_prob = (x.index_select(1, columns) for x in (whole.mask, whole.proximal_log_prob))
    part = whole._replace(batch=whole.batch.columns(columns), mask=mask, proximal_log_prob=proximal_log_prob)
    if whole.priorities is not None:
        part = part._replace(priorities=Priorities(*(x.index_select(0, columns) for x in whole.priorities)))
    return part


def _order(whole: Minibatch, num_together: int) -> Tensor:
    """Of the trajectories of an epoch, [B / A]. The random numbers are the host's, whose state checkpoints keep."""
    num_trajectories, device = whole.batch.num_trajectories // num_together, whole.mask.device
    if whole.priorities is None:
        return torch.randperm(num_trajectories).to(device)
    return draw(whole.priorities.probability, torch.rand(num_trajectories, dtype=torch.float64).to(device))


def _order_of_steps(batch: Batch, at_least: int, num_together: int) -> Tensor:
    """Of the steps of an epoch, as indices among all T x B / A. Those in which all wait for their turn are left out."""
    order, acts = torch.randperm(batch.num_samples // num_together).to(batch.reward.device), batch.acts()
    if acts is None:
        return order
    decisions = order[acts[:-1].reshape(-1, num_together).any(1)[order]]
    return decisions if len(decisions) >= at_least else order
