"""The surgery itself: where each tensor of the new network comes from, and how its numbers are made.

Old numbers go to the places of what they stood for. A new input gets zeros, so that it changes nothing. A new unit gets
fresh numbers, and all that reads it gets zeros. So the new network computes what the old one did, and its gradients
reach all that is new.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from sf.envs.errors import UsageError
from sf.surgery.anatomy import ACTOR, CRITIC, Anatomy, TensorSpec
from sf.surgery.axes import NEW, places, size

Kind = Literal["kept", "grown", "cut", "copied", "new", "dropped"]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """What becomes of a tensor.

    name: in the new network; in the old one for what is dropped. source: its name in the old network; None: it is new.
    """

    name: str
    kind: Kind
    source: str | None
    shape: Shape | None
    old_shape: Shape | None


@dataclass(frozen=True)
class Body:
    """A network as far as surgery knows it. shapes: of its tensors, by name."""

    anatomy: Anatomy
    shapes: Mapping[str, Shape]


@dataclass(frozen=True)
class _Move:
    """Where the numbers of a tensor go.

    places: for each axis of the new tensor, where its indices were. old_sizes: of each axis before. shape: of the new
    tensor.
    """

    places: list[Tensor]
    old_sizes: list[int]
    shape: Shape

    @property
    def sizes(self) -> list[int]:
        return [len(each) for each in self.places]

    @property
    def num_kept(self) -> int:
        return math.prod(int((each != NEW).sum()) for each in self.places)

    def write(self, old: Tensor, out: Tensor) -> None:
        """Writes the numbers of the old tensor into `out`, of `sizes`."""
        old = old.reshape(self.old_sizes)
        for axis, where in enumerate(self.places):
            taken = where[where != NEW]
            if not torch.equal(taken, torch.arange(self.old_sizes[axis])):
                old = old.index_select(axis, taken)
        out[_grid([_where(each != NEW) for each in self.places])] = old


class Operation:
    """Makes the tensors of one network from those of another.

    sources: the old tensor by the name of the new one; None: there is none. changes: what becomes of each tensor.
    """

    def __init__(self, old: Body, new: Body) -> None:
        """Raises UsageError where a tensor of a user's module has another shape."""
        self._old, self._new = old, new
        self._names = {spec.role: name for name, spec in old.anatomy.items()}
        self.sources = {name: self._source(spec) for name, spec in new.anatomy.items()}
        used = {*self.sources.values()}
        dropped = [Change(name, "dropped", name, None, old.shapes[name]) for name in old.anatomy if name not in used]
        self.changes = [*map(self._change, new.anatomy), *dropped]

    @property
    def removed(self) -> list[Change]:
        """Returns the changes by which something is lost. Statistics of returns are no loss: the head takes them in."""
        lost = [change for change in self.changes if change.kind in ("cut", "dropped")]
        return [change for change in lost if not change.name.startswith("value_norm.")]

    def needs_fresh(self, name: str) -> bool:
        """Returns whether a tensor has numbers that are neither old nor 0."""
        spec = self._new.anatomy[name]
        if self.sources[name] is None:
            return True
        places = self._move(name).places
        return any(bool((places[axis] == NEW).any()) for axis in spec.fresh or range(len(places)))

    def write_weight(self, name: str, old: Tensor | None, fresh: Tensor) -> None:
        """Makes a weight or statistic of the new network from that of its source.

        fresh: the same tensor of an untrained network, which is written to.
        """
        spec = self._new.anatomy[name]
        if old is None:
            if self._is_identity(spec):
                _make_identity(spec, fresh)
            return
        move = self._move(name)
        out = fresh if fresh.ndim == len(move.sizes) else fresh.view(move.sizes)
        for axis in spec.zero:
            idxs = [torch.arange(n) for n in move.sizes]
            idxs[axis] = _where(move.places[axis] == NEW)
            for units in spec.fresh:
                idxs[units] = _where(move.places[units] != NEW)
            out[_grid(idxs)] = 0.0
        move.write(old, out)

    def moment(self, name: str, old: Tensor) -> Tensor:
        """Returns a moment of a weight of the new network, from that of its source: 0 for what is new."""
        if old.shape != self._old.shapes[self._source_of(name)]:  # the number of steps
            return old
        move = self._move(name)
        out = old.new_zeros(move.sizes)
        move.write(old, out)
        return out.view(move.shape)

    def missed(self, mean: str, count: Tensor, before: Tensor | None) -> Tensor | None:
        """Returns how many samples each entry of the statistic `mean` has missed; None for none.

        count: of the samples. before: what the old entries have missed.
        """
        move, old_shape = self._move(mean), self._old.shapes[self._source_of(mean)]
        if before is None:
            if move.num_kept == math.prod(move.shape):
                return None
            before = count.new_zeros(old_shape)
        out = count.expand(move.sizes).clone()
        move.write(before, out)
        return out.view(move.shape)

    def _source_of(self, name: str) -> str:
        source = self.sources[name]
        assert source is not None
        return source

    def _source(self, spec: TensorSpec) -> str | None:
        """A critic of its own begins as a copy of the actor."""
        found = self._names.get(spec.role)
        if found is None and spec.role.startswith(f"{CRITIC}."):
            return self._names.get(ACTOR + spec.role.removeprefix(CRITIC))
        return found

    def _change(self, name: str) -> Change:
        source, shape = self.sources[name], self._new.shapes[name]
        if source is None:
            return Change(name, "new", None, shape, None)
        spec, old_spec, old_shape = self._new.anatomy[name], self._old.anatomy[source], self._old.shapes[source]
        if (spec.is_foreign or old_spec.is_foreign) and shape != old_shape:
            raise UsageError(
                f"{name} would have the shape {list(shape)}, and has {list(old_shape)}: nothing is known of the axes "
                "of a module of your own, so leave the observations and flags that it is made from as they were"
            )
        num_kept = self._move(name).num_kept
        kind: Kind = "kept" if spec.role == old_spec.role else "copied"
        if num_kept < math.prod(old_shape):
            kind = "cut"
        elif num_kept < math.prod(shape):
            kind = "grown"
        return Change(name, kind, source, shape, old_shape)

    def _move(self, name: str) -> _Move:
        new_axes, old_axes = self._new.anatomy[name].axes, self._old.anatomy[self._source_of(name)].axes
        found = [places(new, old) for new, old in zip(new_axes, old_axes, strict=True)]
        return _Move(found, [size(old) for old in old_axes], self._new.shapes[name])

    def _is_identity(self, spec: TensorSpec) -> bool:
        """Returns whether it is of a layer that is added behind an old one, and read in its place."""
        before = spec.identity_after
        if before is None:
            return False
        of_before = next(each for each in self._new.anatomy.values() if each.role == before)
        return before in self._names or self._is_identity(of_before)


def _make_identity(spec: TensorSpec, fresh: Tensor) -> None:
    """Makes the weight of a layer that hands on what comes in; its units beyond that stay fresh."""
    out, given = spec.axes
    come_in = places(out, given)
    hands_on = _where(come_in != NEW)
    fresh[hands_on] = 0.0
    fresh[hands_on, come_in[hands_on]] = 1.0


def _where(chosen: Tensor) -> Tensor:
    return chosen.nonzero().flatten()


def _grid(idxs: list[Tensor]) -> tuple[Tensor, ...]:
    """Returns what selects these indices of each axis."""
    return tuple(idx.view([-1 if axis == own else 1 for own in range(len(idxs))]) for axis, idx in enumerate(idxs))
