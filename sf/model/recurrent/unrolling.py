"""What the recurrent cores have in common as they go through the steps of trajectories, forth and back."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

_CACHED = 1 << 16  # numbers: several tensors of so many stay in the cache of a core

sigmoid_backward = torch.ops.aten.sigmoid_backward  # (a, y) -> a y (1 - y)
tanh_backward = torch.ops.aten.tanh_backward  # (a, y) -> a (1 - y^2)


def add_product(x: Tensor, h: Tensor, weight_t: Tensor, out: Tensor) -> None:
    """out [N, M] = x [N, M] + h [N, K] @ weight_t [K, M]. The product has the dtype of the weight; all else has one."""
    if out.dtype == weight_t.dtype:
        torch.addmm(x, h, weight_t, out=out)
    else:
        torch.add(x, h.to(weight_t.dtype) @ weight_t, out=out)


def blocks_from_the_end(states: Tensor) -> Iterator[slice]:
    """Steps of [T, B, H] for which the same is computed at once: so few on a CPU that it stays in the cache."""
    num_steps = len(states)
    size = max(1, _CACHED // states[0].numel()) if states.device.type == "cpu" else num_steps
    for end in range(num_steps, 0, -size):
        yield slice(max(0, end - size), end)
