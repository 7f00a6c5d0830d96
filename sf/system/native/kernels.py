"""The loops of kernels.cpp on tensors: what they compute stands there.

They run on the thread that calls them, without Python's lock, so several threads may call them at once. Each needs
dense tensors in the memory of the host.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sf.system.native import library
from sf.system.native.library import CompilerError

_NUMBERS = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_PARAMETERS = {  # addresses, then sizes
    "elu": (1, 1),
    "shift_and_scale": (4, 2),
    "lstm_forward": (9, 2),
    "lstm_backward": (9, 2),
    "gru_forward": (9, 2),
    "gru_backward": (9, 2),
    "mingru_forward": (3, 3),
    "mingru_backward": (6, 3),
}

_SHARED_FROM = 1 << 15  # numbers for each thread: as many as PyTorch gives one at least
_AS_FAST_AS = 3  # threads of PyTorch, which share what a loop does on one

Loop = Callable[..., None]


def why_not() -> str | None:
    """Why this machine has no compiled loops, as a clause; None where it has. Makes them where they are missing."""
    try:
        for numbers in _NUMBERS.values():
            library.load(numbers)
    except CompilerError as error:
        return str(error)
    return None


def pay(like: Tensor, size: int) -> bool:
    """Whether loops over so many numbers, of the dtype and device of `like`, are there and faster than PyTorch.

    Its operations share many numbers among their threads; a loop is three times as fast as one of them.
    """
    if like.device.type != "cpu" or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False  # an export or a compiler of torch follows the operations: it must see all of them
    num_threads = min(torch.get_num_threads(), size // _SHARED_FROM)
    return num_threads <= _AS_FAST_AS and bool(_loops(like.dtype))


def find(name: str, like: Tensor) -> Loop:
    """Returns the loop `name` of kernels.cpp for such numbers. It takes addresses, then sizes. Raises KeyError."""
    return _loops(like.dtype)[name]


def takes_elu(x: Tensor) -> bool:
    """Whether `elu_` is for such tensors."""
    return pay(x, x.numel()) and (x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last))


def elu_(x: Tensor) -> None:
    """exp(x) - 1 in place of all x below 0."""
    find("elu", x)(x.data_ptr(), x.numel())


def takes_images(pixels: Tensor, offset: Tensor) -> bool:
    """Whether `shifted_and_scaled` is for such tensors."""
    is_dense = pixels.is_contiguous() and offset.is_contiguous()
    return pay(offset, pixels.numel()) and pixels.dtype == torch.uint8 and is_dense


def shifted_and_scaled(pixels: Tensor, offset: Tensor, scale: Tensor) -> Tensor:
    """offset + scale x pixel, in the dtype of both. pixels [N, *shape] uint8; offset [*shape]; scale []."""
    out = torch.empty(pixels.shape, dtype=offset.dtype)
    addresses = (tensor.data_ptr() for tensor in (pixels, offset, scale, out))
    find("shift_and_scale", offset)(*addresses, len(pixels), offset.numel())
    return out


@functools.cache
def _loops(dtype: torch.dtype) -> dict[str, Loop]:
    """Returns the loops for numbers of this dtype, by name; none where there are none."""
    try:
        loaded: Any = library.load(_NUMBERS[dtype])
    except (CompilerError, KeyError):
        return {}
    loops = {}
    for name, (num_addresses, num_sizes) in _PARAMETERS.items():
        loop = loaded[name]
        loop.argtypes = [ctypes.c_void_p] * num_addresses + [ctypes.c_int64] * num_sizes
        loop.restype = None
        loops[name] = loop
    return loops
