"""Two ways of taking an optimiser step, from the same weights: what each gives and writes, and whether they agree.

They are compared tensor by tensor, by what the step adds to each: a layer that is not trained differs by all of its
update, however small its gradient is beside those of other layers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sf.learner.optimizer.optimizer import AdamState, Optimizer
from sf.system.native import programs


class Tolerance(NamedTuple):
    """Bounds how far two ways of taking a step may differ.

    results: relative, or absolute below 1. added: of what the step adds to a tensor, as a share of its norm. of_layer:
    the share of its layer to which the gradient of a single number may cancel out, so that only rounding is left; that
    of N numbers cancels out to the Nth power of it.
    """

    results: float
    added: float
    of_layer: float


# With bfloat16 or without. Compiled programs of the presets' networks keep float32 between operations, so gradients
# differ by up to 0.16 in bfloat16, and squared ones by 0.23; in float32 both by less than 1e-4. One of half the size
# differs by 0.5.
TOLERANCE = {True: Tolerance(0.05, 0.35, 0.02), False: Tolerance(1e-3, 0.01, 1e-3)}

Tensors = Mapping[str, Tensor]  # by name

_ROUNDING = 4 * torch.finfo(torch.float32).eps  # of a tensor that is written, as a share of its norm


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


class Outcome(NamedTuple):
    """Holds the results of a step, by name, and what it has written."""

    results: dict[str, Tensor]
    written: Written


class Trial:
    """Takes one and the same step in several ways."""

    def __init__(self, network: Any, optimizer: Optimizer) -> None:
        self._written = Written.of(network, optimizer)
        self._before = self._written.copied()
        self._optimizer = optimizer

    def take(self, way: Callable[[], dict[str, Tensor]]) -> Outcome:
        """The step by `way`, which returns its results by name."""
        self.undo()
        results = way()
        return Outcome(results, self._written.copied())

    def undo(self) -> None:
        self._written.copy_from(self._before)

    def keep(self, outcome: Outcome) -> dict[str, Tensor]:
        """This is how the step has been taken. Returns its results."""
        self._written.copy_from(outcome.written)
        return outcome.results

    def agree(self, found: Outcome, expected: Outcome, tolerance: Tolerance) -> bool:
        """Returns whether two outcomes of the step agree in results, weights, statistics and moments.

        The moments tell the gradients.

        Weights are compared as if both had the same moments: Adam's first steps are as long where a gradient is nothing
        but rounding.
        """
        pairs = ((found.results[name], expected.results[name]) for name in expected.results)
        if not all(torch.allclose(a, b, tolerance.results, tolerance.results, equal_nan=True) for a, b in pairs):
            return False
        moments, adam_update = expected.written.moments, self._optimizer.adam_update
        weights = dict(found.written.weights)
        for name, state in found.written.moments.items():
            weights[name] = weights[name] - adam_update(state) + adam_update(moments[name])
        ours, theirs = _parts(Written(weights, found.written.moments)), _parts(expected.written)
        before = _parts(self._before)
        decays = [1.0, 1.0, *self._optimizer.adam_betas, *[1.0] * len(before)]  # of weights, moments, statistics
        return all(
            _add_the_same(a, b, old, decay, tolerance)
            for a, b, old, decay in zip(ours, theirs, before, decays, strict=False)
        )


def trained(network: Any) -> dict[str, nn.Parameter]:
    """Its weights by name, without those that are frozen."""
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


def _parts(written: Written) -> list[Tensors]:
    """The weights that are trained, each field of `AdamState`, and each of the other tensors alone."""
    weights, moments = written
    fields = zip(*moments.values(), strict=True)
    others = [{name: tensor} for name, tensor in weights.items() if name not in moments]
    return [
        {name: weights[name] for name in moments},
        *(dict(zip(moments, field, strict=True)) for field in fields),
        *others,
    ]


def _add_the_same(found: Tensors, expected: Tensors, before: Tensors, decay: float, tolerance: Tolerance) -> bool:
    """Whether two ways do, where a tensor becomes `decay` times what it was before, and what is added."""
    added = {name: _distance(tensor, decay * before[name].double()) for name, tensor in expected.items()}
    of_layer: dict[str, float] = defaultdict(float)
    for name, size in added.items():
        of_layer[_layer(name)] += size

    def agrees(name: str) -> bool:
        tensor = expected[name]
        size = added[name] + tolerance.of_layer ** tensor.numel() * of_layer[_layer(name)]
        return _distance(found[name], tensor) <= tolerance.added * size + _ROUNDING * _size(tensor)

    return all(map(agrees, expected))


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def _distance(one: Tensor, other: Tensor) -> float:
    """The norm of the difference, where infinities of the same sign are equal."""
    return float(torch.where(one == other, 0.0, one.double() - other.double()).norm())


def _size(tensor: Tensor) -> float:
    """The norm of its finite numbers."""
    return float(torch.where(tensor.isfinite(), tensor, 0.0).double().norm())
