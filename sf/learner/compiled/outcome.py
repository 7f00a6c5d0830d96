"""What an optimiser step gives and writes, to compare two ways of taking it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sf.learner.compiled.training_step import RESULTS
from sf.learner.optimizer.optimizer import AdamState

TOLERANCE = {True: 0.1, False: 1e-3}  # with bfloat16 or without: relative, or absolute below 1


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
    """Its largest number; 0 where there are none."""
    return float(tensor.double().abs().max()) if tensor.numel() else 0.0


def _differ_by(found: Tensor, expected: Tensor) -> float:
    return _size(found.double() - expected.double())


def write(tensors: Iterable[Tensor], numbers: Iterable[Tensor]) -> None:
    for tensor, number in zip(tensors, numbers, strict=True):
        tensor.copy_(number)
