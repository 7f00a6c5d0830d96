"""One GPU as a learner and a policy worker use it: its facts, copies, streams, other GPUs beside it.

Probes use `sf.gpu` where they can, and call `torch.cuda` nowhere but in this module.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sf import gpu
from sf.arrays import Field, SharedArrays
from sf.check.probe import Needs, ProbeError
from sf.native import kernels
from sf.processes.torch_runtime import has_bfloat16

_ENOUGH_MEMORY = 2 << 30
_NUMBERS = 4 << 20  # int32: a copy that takes long enough to be overtaken
_COPIES = 20


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


def compiled_loops(needs: Needs) -> str:
    reason = kernels.why_not()
    if reason is not None:
        raise ProbeError(reason)
    return "made by this machine's C++ compiler, for float32 and bfloat16"


def bfloat16_on_cpu(needs: Needs) -> str:
    """The precision that `--precision auto` takes on the CPU."""
    if not has_bfloat16("cpu"):
        raise ProbeError("this CPU has no bfloat16 (AVX512_BF16): networks on it run in float32")
    numbers = torch.arange(64.0).reshape(8, 8)
    if not torch.allclose((numbers.bfloat16() @ numbers.bfloat16().T).float(), numbers @ numbers.T, rtol=0.02):
        raise ProbeError("a matrix product in bfloat16 is wrong")
    return "networks on the CPU run in bfloat16"


def after_fork(device: str) -> str:
    """The fork server of the learners has not touched CUDA, so learners can."""
    if torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork():
        raise ProbeError("CUDA was initialised before the fork")
    number = torch.full((1,), 7, device=device)
    if int(number) != 7:
        raise ProbeError(f"a number written as 7 was read as {int(number)}")
    return f"CUDA works in process {os.getpid()}, which was forked"


def facts(device: str) -> str:
    """Raises an exception where no kernel runs: this torch may have none for this GPU."""
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


def page_locking(device: str) -> str:
    """Shared memory can be page-locked in place, and a copy or a kernel that reads it finds what is there."""
    gpu.take(device)
    arrays = SharedArrays([Field("rows", (_NUMBERS,), np.int32)])
    arrays["rows"][:] = np.arange(_NUMBERS)
    rows, buffer = torch.from_numpy(arrays["rows"]), torch.from_numpy(arrays.buffer)
    cudart = torch.cuda.cudart()
    try:
        torch.cuda.check_error(int(cudart.cudaHostRegister(buffer.data_ptr(), buffer.numel(), 0)))
    except RuntimeError as error:
        raise ProbeError(f"{str(error).strip()}; {_without_page_locking(rows, device)}") from None
    _require_same(rows.to(device, non_blocking=True), rows, "a copy from page-locked shared memory")
    is_seen = rows.is_pinned()
    torch.cuda.check_error(int(cudart.cudaHostUnregister(buffer.data_ptr())))
    if not is_seen:
        raise ProbeError("cudaHostRegister succeeded, and torch takes the memory for pageable all the same")
    in_place = gpu.mapped(arrays["rows"], device)
    if in_place is None:
        raise ProbeError("cudaHostRegister succeeded, and no kernel can read the memory in place")
    _require_same(in_place + 0, rows, "what a kernel reads in page-locked shared memory")
    torch.cuda.check_error(int(cudart.cudaHostUnregister(rows.data_ptr())))
    return f"{buffer.numel() >> 20} MiB of shared memory in place, copied whole, and read by a kernel"


def streams(device: str) -> str:
    """After the event behind a copy on another stream, the copy is there: on the GPU and on the host."""
    gpu.take(device)
    host, back = (gpu.page_locked((_NUMBERS,), torch.int32, device) for _ in range(2))
    host.copy_(torch.arange(_NUMBERS, dtype=torch.int32))
    target = torch.zeros(_NUMBERS, dtype=torch.int32, device=device)
    sent = gpu.CopyStream(device).copy([(target, host)] * _COPIES, after=gpu.now(device))
    sent.hold_back()
    copied = target + 1
    gpu.copy(back, copied, device).wait()
    sent.wait()
    _require_same(back, host + 1, "a copy that was waited for by its event")
    return f"{_COPIES} copies of {host.nbytes >> 20} MiB on a stream beside, seen after their event"


def peers(device: str) -> str:
    """Between this GPU and each other one."""
    gpu.take(device)
    own = torch.device(device).index
    numbers = torch.arange(_NUMBERS, dtype=torch.int32, device=device)
    ways = []
    for other in range(gpu.count()):
        if other != own:
            _require_same(numbers.to(f"cuda:{other}"), numbers.cpu(), f"a copy to cuda:{other}")
            ways.append(f"to {other} {'directly' if torch.cuda.can_device_access_peer(own, other) else 'by the host'}")
    return f"copies {', '.join(ways)}" if ways else "there is no other GPU"


def _without_page_locking(rows: Tensor, device: str) -> str:
    """Whether ordinary copies work. CUDA may report an earlier failure once, at the next call."""
    with suppress(RuntimeError):
        rows[:1].to(device)
    try:
        _require_same(rows.to(device), rows, "an ordinary copy from shared memory")
    except RuntimeError as error:
        return f"ordinary copies fail as well ({str(error).strip().splitlines()[0]})"
    return "ordinary copies work"


def _require_same(on_gpu: Tensor, on_host: Tensor, what: str) -> None:
    num_wrong = int((on_gpu.cpu() != on_host).sum())
    if num_wrong:
        raise ProbeError(f"{what} has {num_wrong} wrong numbers of {on_host.numel()}")
