"""Probes of the GPUs that torch sees, and of one GPU as a learner takes it.

Probes use `sf.gpu` where they can, and call `torch.cuda` nowhere but in this module.
"""

from __future__ import annotations

from pathlib import Path

import torch

from sf import gpu
from sf.check.probe import Needs, ProbeError
from sf.processes.torch_runtime import has_bfloat16

_ENOUGH_MEMORY = 2 << 30


def count(needs: Needs) -> str:
    """How many GPUs a run would use, as a number."""
    return str(gpu.count() if needs.device != "cpu" and gpu.is_available() else 0)


def seen(needs: Needs) -> str:
    """Whether torch sees the GPUs of the machine, or those that the flags ask for."""
    if needs.device == "cpu":
        return "none is wanted (--device cpu)"
    if gpu.is_available():
        return f"torch sees {', '.join(gpu.names())}"
    build = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "a build without CUDA"
    has_driver = any(Path("/dev").glob("nvidia[0-9]*"))
    if needs.device == "cuda" or has_driver:
        there = "the machine has an NVIDIA GPU" if has_driver else "--device is cuda"
        raise ProbeError(f"{there}, and torch ({torch.__version__}, {build}) sees none")
    return "none: networks run on the CPU"


def bfloat16_on_cpu(needs: Needs) -> str:
    """The precision that `--precision auto` takes on the CPU."""
    if not has_bfloat16("cpu"):
        raise ProbeError("this CPU has no bfloat16 (AVX512_BF16): networks on it run in float32")
    numbers = torch.arange(64.0).reshape(8, 8)
    if not torch.allclose((numbers.bfloat16() @ numbers.bfloat16().T).float(), numbers @ numbers.T, rtol=0.02):
        raise ProbeError("a matrix product in bfloat16 is wrong")
    return "networks on the CPU run in bfloat16"


def facts(device: str) -> str:
    """The fork server of the learners has not touched CUDA, so learners can. Raises an exception where no kernel runs:
    this torch may have none for this GPU."""
    if torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork():
        raise ProbeError("CUDA was initialised before the fork")
    gpu.take(device)
    free, total = torch.cuda.mem_get_info(device)
    major, minor = torch.cuda.get_device_capability(device)
    total_of_1000 = int(torch.arange(1000, device=device).sum())
    if total_of_1000 != 499_500:
        raise ProbeError(f"0 + 1 + ... + 999 is {total_of_1000} on it")
    said = (
        f"{torch.cuda.get_device_name(device)}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free, compute capability "
        f"{major}.{minor}, {'bfloat16' if gpu.has_bfloat16() else 'no bfloat16: float32 instead'}"
    )
    if free < _ENOUGH_MEMORY:
        raise ProbeError(said)
    return said
