"""FIFO queues between processes that carry indices, and nothing else.

A queue is a pipe of the kernel; an index is four bytes in it. The kernel wakes the reader, keeps the order, and keeps
its own locks: a process that is killed at whatever moment leaves no queue locked and no message half written. (A mutex
in shared memory, as most queues for processes have, stays locked for ever when its holder is killed.)

One message type a queue: an index, or STOP. The data that an index stands for lies in shared memory. Every queue has
one reader.
"""

from __future__ import annotations

import fcntl
import os
import select
from array import array
from collections.abc import Callable, Iterable
from multiprocessing import reduction
from typing import Any

STOP = -1

_BYTES = 4  # of an index
_NONE = -1  # no descriptor
_ATOMIC_WRITE = 4096 // _BYTES  # indices: a write of up to PIPE_BUF bytes is never mixed with another


class StopRequested(Exception):  # noqa: N818  it is no error
    """The parent asked this process to stop while it waited for a message."""


class IndexQueue:
    """Holds up to `capacity` indices (and a few STOPs), so that a put never waits.

    Can be passed to a child process (as an argument of `multiprocessing.Process`). Raises ValueError where the system
    does not grant the room.
    """

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
                f"a queue of {capacity} messages cannot be made ({error}): pipes of one user may take so many pages "
                "(/proc/sys/fs/pipe-user-pages-soft) and each so many bytes (/proc/sys/fs/pipe-max-size): end other "
                "runs, lower --num_workers or --num_envs_per_worker, or have an administrator raise them (sysctl "
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

    def get_many(self, at_most: int = _ATOMIC_WRITE) -> list[int]:
        """Waiting indices, oldest first, at most this many; waits for the first. More may be waiting still.

        Raises StopRequested where STOP is among them: they are dropped then.
        """
        messages = array("i")
        messages.frombytes(os.read(self._reader, _BYTES * at_most))
        if STOP in messages:
            raise StopRequested
        return messages.tolist()

    def get_many_nowait(self, at_most: int = _ATOMIC_WRITE) -> list[int]:
        """Waiting indices, possibly none. Raises StopRequested as `get_many`."""
        return self.get_many(at_most) if self.has_messages() else []

    def has_messages(self) -> bool:
        return bool(wait([self], timeout_s=0.0))

    def drain(self) -> None:
        """Forget all messages. Not for a queue whose reader lives."""
        while self.has_messages():
            os.read(self._reader, 65536)

    def fileno(self) -> int:
        """What to wait on for messages."""
        return self._reader

    def __reduce__(self) -> tuple[Callable[..., IndexQueue], tuple[Any, ...]]:
        return _attach, (reduction.DupFd(self._reader), reduction.DupFd(self._writer))


def wait(queues: Iterable[IndexQueue], timeout_s: float | None = None) -> list[int]:
    """Wait until one of the queues has a message; the file numbers of those that have. Several may be waited for."""
    poll = select.poll()
    for queue in queues:
        poll.register(queue, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if timeout_s is None else 1000 * timeout_s)]


def _attach(reader: Any, writer: Any) -> IndexQueue:
    queue = IndexQueue.__new__(IndexQueue)
    queue._reader, queue._writer = reader.detach(), writer.detach()
    return queue
