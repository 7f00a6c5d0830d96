"""Arrays in anonymous shared memory: allocated once by the parent, mapped by every process.

The memory is a memfd: it has no name in /dev/shm, is not bound by the size of that file system, and goes when the
last process that maps it goes, however that process ends.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing import reduction
from pathlib import Path
from typing import Any

import numpy as np

from sf.envs.errors import UsageError
from sf.system.machine import cgroups

_ALIGNMENT = 4096  # a page: the arrays of different writers never share a cache line, and a GPU can pin each alone
_LIMIT_FILES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))  # by version


@dataclass(frozen=True)
class Field:
    """One shared array."""

    name: str
    shape: tuple[int, ...]
    dtype: Any

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


_is_private: ContextVar[bool] = ContextVar("is_private", default=False)


@contextmanager
def private_arrays() -> Iterator[None]:
    """The `SharedArrays` that are made while this is open are memory of this process alone."""
    token = _is_private.set(True)
    try:
        yield
    finally:
        _is_private.reset(token)


class SharedArrays:
    """Named numpy arrays in one memfd, zero at first. A child that gets them as an argument maps the same memory."""

    def __init__(self, fields: Iterable[Field], fd: int | None = None, name: str = "sf") -> None:
        """name: in /proc/PID/fd and /proc/PID/maps, for whoever looks at a run from outside."""
        self._fields = tuple(fields)
        offsets, size = [], 0
        for field in self._fields:
            offsets.append(size)
            size += -(-field.num_bytes // _ALIGNMENT) * _ALIGNMENT
        self.num_bytes = max(size, _ALIGNMENT)
        self._fd = -1
        if fd is None and not _is_private.get():
            fd = _memory(name, self.num_bytes)
        if fd is not None:
            self._fd = fd
        self._mmap = mmap.mmap(self._fd, self.num_bytes)  # -1: memory of this process alone
        self.buffer = np.frombuffer(self._mmap, np.uint8)  # all of it, [num_bytes]
        self._arrays = {
            field.name: np.frombuffer(
                self._mmap, field.dtype, count=int(np.prod(field.shape, dtype=np.int64)), offset=offset
            ).reshape(field.shape)
            for field, offset in zip(self._fields, offsets, strict=True)
        }

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)  # the mapping stays as long as an array of it lives

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def named(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays whose name starts with `prefix`, by the rest of their name."""
        return {name[len(prefix) :]: a for name, a in self._arrays.items() if name.startswith(prefix)}

    def __reduce__(self) -> tuple[Callable[..., SharedArrays], tuple[Any, ...]]:
        return _attach, (self._fields, reduction.DupFd(self._fd))


def _memory(name: str, num_bytes: int) -> int:
    """A file descriptor of it. Raises UsageError where it is larger than a file may be."""
    fd = os.memfd_create(name)
    try:
        os.ftruncate(fd, num_bytes)
    except OSError as error:
        os.close(fd)
        if error.errno == errno.EFBIG:
            raise UsageError(
                f"the run needs {num_bytes:,} bytes of shared memory, more than `ulimit -f` allows: raise that limit"
            ) from None
        raise
    return fd


def _attach(fields: tuple[Field, ...], duplicate: Any) -> SharedArrays:
    return SharedArrays(fields, duplicate.detach())


def available_memory(mount: Path = cgroups.MOUNT, of_process: Path = cgroups.OF_PROCESS) -> int:
    """Bytes that this process may still take: of the machine, or of its control groups where that is less.

    The largest number where the system does not tell.
    """
    try:
        meminfo = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    except FileNotFoundError:  # another system than Linux
        return sys.maxsize
    of_machine = int(meminfo["MemAvailable"].split()[0]) * 1024
    groups = cgroups.groups("memory", mount, of_process)
    return min([of_machine, *(left for group in groups if (left := _left_in(group)) is not None)])


def _left_in(group: Path) -> int | None:
    """Bytes that a control group may still take; None where it has no limit."""
    for limit_file, used_file in _LIMIT_FILES:
        limit, used = cgroups.number(group / limit_file), cgroups.number(group / used_file)
        if limit is not None and used is not None:
            return limit - used + _given_back_when_needed(group)
    return None


def _given_back_when_needed(group: Path) -> int:
    """Bytes of files that were read long ago: they count as used, but not against what a process wants."""
    try:
        lines = (group / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    figures = {name: int(figure) for name, figure in (line.split() for line in lines)}
    return figures.get("total_inactive_file", figures.get("inactive_file", 0))  # version 1 counts groups below apart
