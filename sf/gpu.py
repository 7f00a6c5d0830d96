"""The GPU: the only module that calls CUDA for a run. Tests put another in its place, which does all of it late.

A device is named as in `sf.run.plan`: "cpu", or "cuda:N". For "cpu" every function is the plain operation on host
memory, done when it returns, so its callers have one path for both.

Work is queued in the order of the calls of a thread, on the current stream of its device; `take` comes first in every
thread. What a copy gives is there for another stream, thread or process only after its event.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
import torch.multiprocessing  # registers how a tensor in GPU memory is passed to another process
from torch import Tensor

HOST = "cpu"
_T = TypeVar("_T")
_WARM_UPS = 2


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


# Work that is queued again and again


class Recording(Generic[_T]):
    """The kernels of a function, recorded once, which one call queues all at once (a CUDA graph).

    results: of the function; each `replay` overwrites them.
    """

    def __init__(self, function: Callable[[], _T], generator: torch.Generator | None = None) -> None:
        """In a thread that has taken a GPU. The function is called some times. What it reads has to stay where it is,
        and it waits for nothing on the device. generator: that it draws from, if not PyTorch's own; replays draw on
        from where it is. Raises RuntimeError where it cannot be recorded."""
        current = torch.cuda.current_stream()
        _warm_up(function)
        self._graph = torch.cuda.CUDAGraph()
        _forget_workspaces()  # so that this recording has its own, which no other one takes along when it goes
        generators = [torch.cuda.default_generators[torch.cuda.current_device()]]
        if generator is not None:
            self._graph.register_generator_state(generator)
            generators.append(generator)
        states = [each.clone_state() for each in generators]
        pool = torch.cuda.graph_pool_handle()
        try:
            with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
                self.results = function()
        except RuntimeError:
            if _end_capture(pool):
                _failed.append(self._graph)
                for each, state in zip(generators, states, strict=True):
                    each.graphsafe_set_state(state)
            raise
        finally:
            torch.cuda.set_stream(current)  # where that fails, PyTorch leaves another one
            _forget_workspaces()

    def replay(self) -> _T:
        self._graph.replay()
        return self.results


def _warm_up(function: Callable[[], Any]) -> None:
    """What is only done at first: libraries that start, memory that is taken.

    Raises RuntimeError where the function waits for the device once that is done.
    """
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(beside):
            for _ in range(_WARM_UPS - 1):
                function()
            with _without_waiting():
                function()
    finally:
        torch.cuda.current_stream().wait_stream(beside)


@contextmanager
def _without_waiting() -> Iterator[None]:
    """Raises RuntimeError at the end where this thread has waited for the device: a recording would fail, and leave
    PyTorch's allocator in the middle of it."""
    thread, waited, mode = threading.get_ident(), [], torch.cuda.get_sync_debug_mode()
    show = warnings.showwarning

    def note(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if threading.get_ident() == thread and "called a synchronizing" in str(message):
            waited.append(message)
        elif "synchronization debug mode" not in str(message).lower():
            show(message, *args, **kwargs)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=".*called a synchronizing")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(mode)
    if waited:
        raise RuntimeError("it waits for the GPU in the middle")


_failed: list[torch.cuda.CUDAGraph] = []
"""Recordings whose capture PyTorch has not ended. Its allocator of page-locked memory goes on asking them."""


def _end_capture(pool: Any) -> bool:
    """End a capture for PyTorch's allocator, which else would free no memory any more; False where it has ended.

    What fails by itself, out of memory for example, PyTorch ends; what CUDA refuses, it does not.
    """
    device = torch.cuda.current_device()
    end = getattr(torch._C, "_cuda_endAllocateToPool", None)  # PyTorch 2.7 has it by another name
    end = torch._C._cuda_endAllocateCurrentStreamToPool if end is None else end  # type: ignore[attr-defined]
    try:
        end(device, pool)
    except RuntimeError:
        return False
    torch._C._cuda_releasePool(device, pool)
    return True


def _forget_workspaces() -> None:
    """Those of cuBLAS: one is kept for each stream, and recordings are made on the same stream."""
    forget = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if forget is not None:
        forget()


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
