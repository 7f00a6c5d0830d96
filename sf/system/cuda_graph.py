"""Work that is queued on a GPU again and again, recorded once (CUDA graphs)."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch

_T = TypeVar("_T")
_WARM_UPS = 2

_failed: list[torch.cuda.CUDAGraph] = []
"""Recordings whose capture PyTorch has not ended. Its allocator of page-locked memory goes on asking them."""


class Recording(Generic[_T]):
    """The kernels of a function, which one call queues (a CUDA graph). results: each `replay` overwrites them."""

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
    """Does what is done at first alone. Raises RuntimeError where the function waits for the device after that."""
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
