"""Two ways of taking an optimiser step, from the same weights: what each gives and writes, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sf.learner.compiled.training_step import RESULTS
from sf.learner.optimizer.optimizer import AdamState, Optimizer
from sf.native import programs

TOLERANCE = {True: 0.1, False: 1e-3}  # with bfloat16 or without: relative, or absolute below 1


class Written(NamedTuple):
    """What a step writes: the tensors themselves, or copies of them.

    weights: parameters and buffers, by name. moments: of the parameters that are trained.
    """

    weights: dict[str, Tensor]
    moments: dict[str, AdamState]

    @classmethod
    def of(cls, network: Any, optimizer: Optimizer) -> Written:
        moments = {name: optimizer.adam_state(weight) for name, weight in trained(network).items()}
        return cls(programs.weights_of(network), moments)

    def tensors(self) -> list[Tensor]:
        return pytree.tree_leaves(self)

    def copied(self) -> Written:
        return pytree.tree_map(torch.clone, self)

    def copy_from(self, other: Written) -> None:
        for tensor, number in zip(self.tensors(), other.tensors(), strict=True):
            tensor.copy_(number)


class Trial:
    """Takes one and the same step in several ways."""

    def __init__(self, network: Any, optimizer: Optimizer) -> None:
        self._written = Written.of(network, optimizer)
        self._before = self._written.copied()

    def take(self, way: Callable[[], dict[str, Tensor]]) -> Outcome:
        """The step by `way`, which returns `RESULTS` by name."""
        self.undo()
        results = way()
        return Outcome(results, *self._written.copied())

    def undo(self) -> None:
        self._written.copy_from(self._before)

    def keep(self, outcome: Outcome) -> dict[str, Tensor]:
        """This is how the step has been taken. Returns its results."""
        self._written.copy_from(Written(outcome.weights, outcome.moments))
        return outcome.results


class Outcome(NamedTuple):
    """Of a step: `RESULTS`, and what it has written."""

    results: dict[str, Tensor]
    weights: dict[str, Tensor]
    moments: dict[str, AdamState]

    def agrees_with(self, expected: Outcome, tolerance: float, learning_rate: float) -> bool:
        """Moments relative to the largest of the network. Weights by two steps more, because Adam makes a whole step of
        a gradient that is nothing but rounding."""
        pairs = [(self.results[name], expected.results[name]) for name in RESULTS]
        are_close = [torch.allclose(*pair, rtol=tolerance, atol=tolerance, equal_nan=True) for pair in pairs]
        for name, weight in expected.weights.items():
            are_close.append(_differ_by(self.weights[name], weight) <= tolerance * _size(weight) + 2 * learning_rate)
        for field in AdamState._fields:
            pairs = [
                (getattr(self.moments[name], field), getattr(state, field)) for name, state in expected.moments.items()
            ]
            size = max((_size(moment) for _, moment in pairs), default=0.0)
            are_close += [_differ_by(*pair) <= tolerance * size for pair in pairs]
        return all(are_close)


def trained(network: Any) -> dict[str, nn.Parameter]:
    """Its weights by name, without those that are frozen."""
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


def _size(tensor: Tensor) -> float:
    """Its largest finite number; 0 where there are none."""
    return _largest(torch.where(tensor.isfinite(), tensor, 0.0))


def _differ_by(found: Tensor, expected: Tensor) -> float:
    """Not where both are infinite."""
    return _largest(torch.where(found == expected, 0.0, found.double() - expected.double()))


def _largest(tensor: Tensor) -> float:
    return float(tensor.double().abs().max()) if tensor.numel() else 0.0
