"""The GPU: the only module that calls CUDA for a run, with `sf.system.cuda_graph` behind it. Tests put another in its
place, which does all of it late.

A device is named as in `sf.run.plan`: "cpu", or "cuda:N". For "cpu" every function is the plain operation on host
memory, done when it returns, so its callers have one path for both.

Work is queued in the order of the calls of a thread, on the current stream of its device; `take` comes first in every
thread. What a copy gives is there for another stream, thread or process only after its event.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing  # registers how a tensor in GPU memory is passed to another process
from torch import Tensor

from sf.system.cuda_graph import Recording  # noqa: F401  for those who queue

HOST = "cpu"


class SharingError(RuntimeError):
    """GPU memory of one process cannot be mapped by another."""

    def __init__(self, cause: object) -> None:
        super().__init__(
            f"GPU memory cannot be shared between processes (CUDA IPC: {cause}). It needs Linux on the machine itself "
            "(WSL2 and Jetson have none), and PyTorch's own allocator (no backend:cudaMallocAsync in "
            "PYTORCH_CUDA_ALLOC_CONF). `sf-train --check` tests it; --device cpu trains without"
        )


# What there is


def is_available() -> bool:
    return torch.cuda.is_available()


def count() -> int:
    return torch.cuda.device_count()


def names() -> list[str]:
    return [torch.cuda.get_device_name(idx) for idx in range(count())]


def has_bfloat16() -> bool:
    return torch.cuda.is_bf16_supported(including_emulation=False)


# A process, and each of its threads


def torch_device(device: str) -> torch.device:
    """Where tensors of this device are."""
    return torch.device(device)


def take(device: str) -> None:
    """Make it the current device of this thread: else CUDA would open a context of some 400 MB on GPU 0 as well."""
    index = torch.device(device).index
    if index is not None:
        torch.cuda.set_device(index)


# Copies


class Event:
    """A point in the work that a thread has queued."""

    def __init__(self, event: torch.cuda.Event | None) -> None:
        self._event = event  # None on the host, where nothing is queued

    def wait(self) -> None:
        """Until the device is there. The thread sleeps: its core is free meanwhile."""
        if self._event is not None:
            self._event.synchronize()

    def hold_back(self) -> None:
        """What this thread queues from now on waits for it, on the device."""
        if self._event is not None:
            torch.cuda.current_stream().wait_event(self._event)


def page_locked(shape: Iterable[int], dtype: torch.dtype, device: str) -> Tensor:
    """Zeros in host memory from and to which `device` copies without a detour."""
    return torch.zeros(tuple(shape), dtype=dtype, pin_memory=device != HOST)


def now(device: str) -> Event:
    """The point that this thread's queue has reached."""
    if device == HOST:
        return Event(None)
    event = torch.cuda.Event(blocking=True)
    event.record()
    return Event(event)


def copy(out: Tensor, source: Tensor, device: str) -> Event:
    """Queue a copy within the device, or to or from page-locked memory, which must stay as it is until the event."""
    queue_copy(out, source, device)
    return now(device)


def queue_copy(out: Tensor, source: Tensor, device: str) -> None:
    """The same without an event of its own: it has been made by the next one. Can be recorded."""
    out.copy_(source, non_blocking=True)


class CopyStream:
    """Copies beside the work of the thread: they wait for nothing but what they are told to."""

    def __init__(self, device: str) -> None:
        """In a thread that has taken the device."""
        self._device = device
        self._stream = None if device == HOST else torch.cuda.Stream()

    def copy(self, pairs: Iterable[tuple[Tensor, Tensor]], after: Event) -> Event:
        """Queue copies of (out, source) behind `after`."""
        with torch.cuda.stream(self._stream):  # None: nothing changes
            after.hold_back()
            for out, source in pairs:
                out.copy_(source, non_blocking=True)
            return now(self._device)


_REGISTERED = 1 | 2  # for every context, and mapped: cudaHostRegisterPortable, cudaHostRegisterMapped


class _OnDevice:
    """Host memory as an array that is on a GPU: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html"""

    def __init__(self, memory: np.ndarray) -> None:
        address = memory.__array_interface__["data"][0]
        self.__cuda_array_interface__ = {
            "shape": memory.shape,
            "typestr": memory.dtype.str,
            "data": (address, False),
            "version": 3,
        }


def mapped(memory: np.ndarray, device: str) -> Tensor | None:
    """`memory`, whole pages of the host, as a tensor that kernels of a GPU read over the bus, without work of the host.

    It is page-locked from here on, and has to outlive the tensor. None where it cannot be.
    """
    cudart = torch.cuda.cudart()
    try:
        address = memory.__array_interface__["data"][0]
        torch.cuda.check_error(int(cudart.cudaHostRegister(address, memory.nbytes, _REGISTERED)))
        return torch.as_tensor(_OnDevice(memory), device=device)
    except (RuntimeError, TypeError):
        with suppress(RuntimeError):
            torch.ones(1, device=device)  # else the next kernel of this process would report it
        return None


# Memory that other processes map


def shared_zeros(shape: tuple[int, ...], device: str) -> Tensor:
    """float32 in GPU memory, for `send`. It goes with this process. Raises SharingError where none can be shared."""
    memory = torch.zeros(shape, device=device)
    try:
        ForkingPickler.dumps(memory)  # makes the handle that `send` would
    except RuntimeError as error:
        raise SharingError(error) from error
    _forget_names_of_counters()
    return memory


def send(memory: Tensor, to: Connection) -> None:
    """Let another process map `memory`. Raises OSError where that process has died."""
    try:
        to.send(memory)
    except RuntimeError as error:
        raise SharingError(error) from error
    finally:
        _forget_names_of_counters()


def receive(sender: Connection) -> Tensor:
    """Map what another process has sent. Raises EOFError where that process has died, SharingError."""
    try:
        return sender.recv()
    except RuntimeError as error:
        raise SharingError(error) from error


def _forget_names_of_counters() -> None:
    """torch counts the readers of GPU memory in files that it would remove at an orderly end of this process alone.

    They stay where they are mapped; a reader that finds no file when it lets go counts nothing, which is no error.
    """
    for path in Path("/dev/shm").glob(f"torch_{os.getpid()}_*"):
        path.unlink(missing_ok=True)


def forget_killed(pid: int) -> None:
    """Remove what CUDA's driver leaves of a process that was killed: files of 80 kB in /dev/shm, with its number."""
    for path in Path("/dev/shm").glob(f"cuda.shm.*.{pid:x}.*"):
        path.unlink(missing_ok=True)
