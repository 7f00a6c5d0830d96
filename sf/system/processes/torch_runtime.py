"""Settings of torch that every process with a network makes once, at its start."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sf.envs.errors import UsageError
from sf.system import gpu

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def configure(device: str, num_threads: int, deterministic: bool, has_fixed_shapes: bool = False) -> None:
    """Take the GPU, set the CPU threads, keep freed memory, and make results reproducible where asked.

    device: "cpu", "cuda", or "cuda:N", which becomes the current one. has_fixed_shapes: batches have few sizes, so
    cuDNN may try its algorithms for each. Where sizes change from call to call it would try them again and again.
    """
    gpu.take(device)
    torch.set_num_threads(num_threads)
    # What is float32 keeps all of its digits: log-probabilities and values need them. The trunk has bfloat16 for speed.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = has_fixed_shapes and not deterministic
    if deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
    _keep_freed_memory()


@contextmanager
def float32_by_default() -> Iterator[None]:
    """Around a network in a process with an environment, which may have set another default dtype for itself."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def resolve_device(device: str) -> str:
    """ "auto" to "cuda" where there is a GPU, else "cpu". Raises ValueError for a GPU that is not there."""
    if device == "auto":
        return "cuda" if gpu.is_available() else "cpu"
    if device == "cuda" and not gpu.is_available():
        raise UsageError("device is cuda, but torch sees no GPU: use --device cpu, or install a CUDA build of torch")
    return device


def resolve_bfloat16(precision: str, device: str, has_memory: bool) -> bool:
    """Whether matrix products run in bfloat16. has_memory: the network has a recurrent core."""
    if precision == "auto" or (precision == "recurrent" and has_memory):
        return has_bfloat16(device)
    return precision == "bfloat16"


def has_bfloat16(device: str) -> bool:
    """Whether the hardware has instructions for it."""
    if device == "cuda":
        return gpu.has_bfloat16()
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    has_avx512_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported and supported() and has_avx512_bf16 and has_avx512_bf16())


def _keep_freed_memory() -> None:
    """Reuse freed memory instead of returning it to the system.

    By default glibc maps every large block anew and the kernel zeroes its pages again: at a batch of 2048 images that
    costs a third of the time of a training step. Elsewhere than on glibc nothing is changed.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
