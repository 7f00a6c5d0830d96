"""Queues that are pipes of the kernel: the default.

An index is four bytes in a pipe. The kernel wakes the reader, keeps the order, and keeps its own locks: a process that
is killed at whatever moment leaves no queue locked and no message half written.
"""

from __future__ import annotations

import os
import select
from array import array
from collections.abc import Callable, Iterable
from multiprocessing import reduction
from typing import Any

from sf.shared.queues.index_queue import MAX_AT_ONCE, IndexQueue, StopRequested
from sf.system.portable import fcntl

_STOP = -1
_BYTES = 4  # of an index
_NONE = -1  # no descriptor
_ATOMIC_WRITE = 4096 // _BYTES  # indices: a write of up to PIPE_BUF bytes is never mixed with another


class PipeQueue(IndexQueue):
    """A pipe, with room for a few stops beside the indices. Raises ValueError where the system does not grant it."""

    def __init__(self, capacity: int) -> None:
        self._reader = self._writer = _NONE
        try:
            self._reader, self._writer = os.pipe()
            # Writes do not fill every page of a pipe to its end.
            needed = 2 * _BYTES * capacity + 4096
            if fcntl.fcntl(self._writer, fcntl.F_GETPIPE_SZ) < needed:
                fcntl.fcntl(self._writer, fcntl.F_SETPIPE_SZ, needed)
        except OSError as error:
            # A smaller pipe is no way out: two processes that both wait for room in each other's would lock up.
            raise ValueError(
                f"a queue of {capacity} messages cannot be made ({error}): the system limits the pages of a user's "
                "pipes (/proc/sys/fs/pipe-user-pages-soft) and the bytes of a pipe (/proc/sys/fs/pipe-max-size): end "
                "other runs, lower --num_workers or --num_envs_per_worker, or have an administrator raise them (sysctl "
                "fs.pipe-user-pages-soft=0)"
            ) from None

    def __del__(self) -> None:
        for fd in (self._reader, self._writer):
            if fd != _NONE:
                os.close(fd)

    def put(self, index: int) -> None:
        os.write(self._writer, index.to_bytes(_BYTES, "little", signed=True))

    def put_many(self, indices: Iterable[int]) -> None:
        messages = array("i", indices)
        for start in range(0, len(messages), _ATOMIC_WRITE):
            os.write(self._writer, messages[start : start + _ATOMIC_WRITE])

    def get_many(self, at_most: int = MAX_AT_ONCE) -> list[int]:
        messages = array("i")
        messages.frombytes(os.read(self._reader, _BYTES * at_most))
        if _STOP in messages:
            raise StopRequested
        return messages.tolist()

    def stop(self) -> None:
        self.put(_STOP)

    def has_messages(self) -> bool:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        return bool(poll.poll(0))

    def drain(self) -> None:
        while self.has_messages():
            os.read(self._reader, 65536)

    def __reduce__(self) -> tuple[Callable[..., PipeQueue], tuple[Any, ...]]:
        return _attach, (reduction.DupFd(self._reader), reduction.DupFd(self._writer))


def _attach(reader: Any, writer: Any) -> PipeQueue:
    queue = PipeQueue.__new__(PipeQueue)
    queue._reader, queue._writer = reader.detach(), writer.detach()
    return queue


class _Pipes:
    """See `sf.shared.queues.Queues`."""

    def make(self, capacity: int) -> PipeQueue:
        return PipeQueue(capacity)

    def may_be_locked_by(self, pid: int | None) -> bool:
        return False


PIPES = _Pipes()
