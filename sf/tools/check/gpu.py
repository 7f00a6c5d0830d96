"""Probes of the GPUs that torch sees, of one GPU as a learner takes it, and of GPU memory that several processes see.

Probes use `sf.system.gpu` where they can, and call `torch.cuda` nowhere but in this module.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sf.system import gpu
from sf.system.processes.torch_runtime import has_bfloat16
from sf.tools.check.probe import Needs, ProbeError

_ENOUGH_MEMORY = 2 << 30
_NUMBERS = 1 << 20  # that two processes share
_ANSWER_WITHIN_S = 15.0


def count(needs: Needs) -> str:
    """Returns the number of GPUs that a run would use."""
    return str(gpu.count() if needs.device != "cpu" and gpu.is_available() else 0)


def seen(needs: Needs) -> str:
    """Checks that torch sees the GPUs of the machine, or those that the flags ask for."""
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


def shared(device: str, first: Connection, second: Connection) -> str:
    """Two others map memory of this process, one after the death of the other; both see what is written later.

    [2, N] float32: row 0 is written here, row 1 by whoever has mapped it.
    """
    gpu.take(device)
    memory = gpu.shared_zeros((2, _NUMBERS), device)
    victim = _share(memory, device, first)
    _exchange(memory, first, 1.0)
    _exchange(memory, first, 2.0)
    os.kill(victim, signal.SIGKILL)
    _require_end(first)
    _share(memory, device, second)
    _exchange(memory, second, 3.0)
    return "another process maps it, both see what is written later, and it outlives a reader that is killed"


def map_and_answer(owner: Connection) -> str:
    """A partner: maps what it is sent. It answers each message with what it reads, and writes the negative of it."""
    with suppress(EOFError, OSError):
        gpu.take(owner.recv())
        memory = gpu.receive(owner)
        owner.send(os.getpid())
        while True:
            owner.recv()
            lowest, highest = memory[0].min(), memory[0].max()
            memory[1].copy_(-memory[0])
            memory[1, :1].cpu()  # waits for the device
            owner.send((float(lowest), float(highest)))
    return ""


def _share(memory: Tensor, device: str, reader: Connection) -> int:
    """The process id of the reader."""
    reader.send(device)
    gpu.send(memory, reader)
    return _answer(reader)


def _exchange(memory: Tensor, reader: Connection, number: float) -> None:
    memory[0].fill_(number)
    memory[0, :1].cpu()  # waits for the device
    reader.send("look")
    seen = _answer(reader)
    if seen != (number, number):
        raise ProbeError(f"the owner wrote {number:g}, and the other process read from {seen[0]:g} to {seen[1]:g}")
    written = (float(memory[1].min()), float(memory[1].max()))
    if written != (-number, -number):
        raise ProbeError(f"the other process wrote {-number:g}, and the owner read from {written[0]:g}, {written[1]:g}")


def _answer(reader: Connection) -> Any:
    if not reader.poll(_ANSWER_WITHIN_S):
        raise ProbeError(f"the process that maps it gave no answer within {_ANSWER_WITHIN_S:g} s")
    try:
        return reader.recv()
    except (EOFError, OSError):
        raise ProbeError("the process that maps it died") from None


def _require_end(reader: Connection) -> None:
    if reader.poll(_ANSWER_WITHIN_S):
        with suppress(EOFError, OSError):
            reader.recv()
            raise ProbeError("a process that was killed still answers")
        return
    raise ProbeError(f"a process that was killed was not gone within {_ANSWER_WITHIN_S:g} s")
