"""What the indices along an axis of a tensor stand for, and where each of them was in an earlier tensor.

An axis is a row of blocks. Each has a name, such as that of an observation, a head or a layer, and a shape, whose
indices stand in C order. Two axes are compared block by block: blocks of the same name correspond from their first
index on, along each dimension.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from sf.envs.errors import UsageError

NEW = -1  # in the place of an index that the earlier axis has not


class Block(NamedTuple):
    """Indices that belong together."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


Axis = tuple[Block, ...]


def size(axis: Axis) -> int:
    """Returns the number of indices."""
    return sum(block.size for block in axis)


def places(new: Axis, old: Axis) -> Tensor:
    """Returns where each index of an axis was in an earlier one, [size(new)] int64, or `NEW`.

    Raises UsageError for blocks of the same name with another number of axes.
    """
    if new == old:
        return torch.arange(size(new))
    begins, end = dict[str, int](), 0
    for block in old:
        begins[block.name], end = end, end + block.size
    shapes = {block.name: block.shape for block in old}
    parts = [
        _in_block(block, shapes[block.name], begins[block.name])
        if block.name in shapes
        else torch.full((block.size,), NEW)
        for block in new
    ]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64)


def names_of(axis: Axis, chosen: Tensor) -> list[str]:
    """Returns the names of the blocks of which some indices are chosen. chosen: [size(axis)] bool."""
    parts = chosen.split([block.size for block in axis])
    return [block.name for block, part in zip(axis, parts, strict=True) if part.any()]


def _in_block(block: Block, old_shape: tuple[int, ...], begin: int) -> Tensor:
    if len(block.shape) != len(old_shape):
        raise UsageError(
            f"{block.name} has the shape {list(block.shape)}, and had {list(old_shape)}: surgery adds entries along "
            "the axes that there are, so keep their number, or give it another name"
        )
    found, is_old = torch.zeros(block.shape, dtype=torch.int64), torch.ones(block.shape, dtype=torch.bool)
    for dim, (length, old_length) in enumerate(zip(block.shape, old_shape, strict=True)):
        idxs = torch.arange(length).view([-1 if d == dim else 1 for d in range(len(block.shape))])
        found = found * old_length + idxs
        is_old = is_old & (idxs < old_length)
    return torch.where(is_old, begin + found, NEW).flatten()
