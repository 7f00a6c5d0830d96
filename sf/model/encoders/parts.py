"""Many images on a CPU go through convolutions in parts, which its caches hold from one layer to the next."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

_PART = 8 * 2**20  # numbers that are encoded at once: see benchmarks/README.md


def in_parts(encode: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """What `encode` makes of rows [N, ...], each for itself: [N, ...]."""
    parts = _parts(rows)
    if len(parts) == 1:
        return encode(rows)
    encoded = []
    for part in parts:
        encoded.append(encode(rows[part]))
        # Each part casts the weights anew. So the gradients of the parts are summed in float32.
        torch.clear_autocast_cache()
    return torch.cat(encoded)


def _parts(rows: Tensor) -> list[slice]:
    """Of nearly the same length; one on a GPU."""
    num_rows = rows.shape[0]
    if rows.device.type != "cpu" or not isinstance(num_rows, int):  # a compiler leaves their number open
        return [slice(None)]
    num_parts = round(rows.numel() / _PART)
    if num_parts <= 1:
        return [slice(None)]
    length = math.ceil(num_rows / num_parts)
    return [slice(begin, begin + length) for begin in range(0, num_rows, length)]
