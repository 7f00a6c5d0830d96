"""Acting on a GPU by recorded kernels (CUDA graphs), for batches of a few sizes.

The network of a policy worker is some hundred kernels of a few microseconds each. To queue them one by one from Python
takes longer than the GPU needs for them, and keeps a core busy that could simulate. A recording is queued at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from sf import gpu
from sf.model.acting import Acting, ActingThere, AnyActing, agree_on

_SMALLEST = 8  # actors of a recording


class RecordedActing(AnyActing):
    """Stands for an `ActingThere`, and computes the same.

    Batches are filled up to the next of a few sizes; rows are computed apart from each other. A size is recorded when
    it is first asked for.
    """

    def __init__(self, acting: Acting, device: torch.device, dtype: torch.dtype, say: Callable[[str], None]) -> None:
        """dtype: of the network's trunk. say: to the user."""
        self._acting = acting
        self._device = device
        self._there = ActingThere(acting, device)
        self._dtype = dtype
        self._say = say
        self._recorded: dict[int, _Recorded | None] = {}  # by size; None where there was no memory for it
        self._is_given_up = False

    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        """See `ActingThere`. The next call overwrites what it returns."""
        recorded = None if self._is_given_up else self._recorded_for(inputs)
        return self._there(*inputs) if recorded is None else recorded(*inputs)

    def _recorded_for(self, inputs: tuple[Any, ...]) -> _Recorded | None:
        """None from the first time on that there can be none."""
        size = size_for(len(inputs[1]))
        if size not in self._recorded:
            is_first = not any(self._recorded.values())
            try:
                self._recorded[size] = _Recorded(self._acting, inputs, size, self._device)
                if is_first and not agree_on(inputs, self._there, self, self._dtype):
                    self._give_up("its results differ from those of the network")
            except torch.OutOfMemoryError:  # the sizes that are there stay
                self._recorded[size] = None
                self._say(f"no memory is left on the GPU to record the policy's step for {size} actors")
            except RuntimeError as error:
                self._give_up(str(error).splitlines()[0])
        return None if self._is_given_up else self._recorded[size]

    def _give_up(self, why: str) -> None:
        self._is_given_up = True
        self._recorded.clear()
        self._say(
            f"the policy's step is not recorded for the GPU ({why}), so it runs kernel by kernel, which is slower"
        )


class _Recorded:
    """For batches up to a size. Rows beyond those of a batch hold what was there before."""

    def __init__(self, acting: Acting, like: tuple[Any, ...], size: int, device: torch.device) -> None:
        inputs = pytree.tree_map(lambda x: torch.zeros((size, *x.shape[1:]), dtype=x.dtype, device=device), like)
        inputs[3].fill_(1.0)  # noise that it may divide by
        self._inputs = pytree.tree_leaves(inputs)
        self._recording = gpu.Recording(lambda: acting(*inputs))

    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        leaves = pytree.tree_leaves(inputs)
        num = len(inputs[1])
        for mine, given in zip(self._inputs, leaves, strict=True):
            mine[:num].copy_(given, non_blocking=True)
        answers, state = self._recording.replay()
        return answers[:num], state[:num]


def size_for(num_actors: int) -> int:
    """The next power of two, or three quarters of it: at most half as many again, and 8 at least."""
    power = max(_SMALLEST, 1 << max(0, num_actors - 1).bit_length())
    smaller = power * 3 // 4
    return smaller if num_actors <= smaller >= _SMALLEST else power
