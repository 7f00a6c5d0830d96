"""Queues of the package faster-fifo: a ring buffer in shared memory behind a mutex and two condition variables.

What it cannot promise is that a death leaves it usable. The mutex stays locked where its holder is killed, and a
condition variable may lock up where a process is killed while it waits for it (glibc up to 2.40 waits for the dead one
to wake). So each process notes in shared memory while it is inside of a queue, and the parent, before it replaces a
dead process, looks whether that one was. The parent itself never waits for a lock: `stop` is a flag that readers look
at, and what needs the lock it does in a thread, which it leaves behind where that does not return.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np

from sf.shared.queues.index_queue import MAX_AT_ONCE, IndexQueue, LockedQueueError, StopRequested
from sf.system.arrays import Field, SharedArrays
from sf.system.machine import extras

_BYTES = 4  # of an index
_BYTES_IN_QUEUE = 8 + _BYTES  # its length stands before each message
_LOOKS_EVERY_S = 0.2  # who waits for an index, whether it is to stop
_LOCK_WITHIN_S = 5.0  # the parent, unless the lock's holder is dead


class FasterFifos:
    """See `sf.shared.queues.Queues`."""

    def __init__(self) -> None:
        extras.require("faster-fifo", "faster_fifo", purpose="--queues faster_fifo")
        num_pids = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
        self._inside = SharedArrays([Field("by_pid", (num_pids,), np.bool_)])  # only pages that are written take memory

    def make(self, capacity: int) -> FasterFifoQueue:
        return FasterFifoQueue(capacity, self._inside)

    def may_be_locked_by(self, pid: int | None) -> bool:
        return pid is not None and bool(self._inside["by_pid"][pid])


class FasterFifoQueue(IndexQueue):
    """inside: `by_pid`, whether a process is inside of a queue. Only one thread of it may be."""

    def __init__(self, capacity: int, inside: SharedArrays) -> None:
        import faster_fifo  # noqa: PLC0415  an extra

        room = _BYTES_IN_QUEUE * (capacity + 1)
        self._queue = faster_fifo.Queue(max_size_bytes=room, loads=_loads, dumps=_dumps)
        self._inside = inside
        self._made_in = os.getpid()

    def put_many(self, indices: Iterable[int]) -> None:
        messages = list(indices)
        if messages:
            self._call(self._queue.put_many_nowait, messages)

    def get_many(self, at_most: int = MAX_AT_ONCE) -> list[int]:
        messages: list[int] = []
        while not messages:
            if self._queue.is_closed():
                raise StopRequested
            with self._noted(), suppress(Empty):
                messages = self._queue.get_many(timeout=_LOOKS_EVERY_S, max_messages_to_get=at_most)
        return messages

    def stop(self) -> None:
        self._queue.close()  # which sets a flag, and no more

    def has_messages(self) -> bool:
        return not self._queue.empty()  # which takes no lock

    def drain(self) -> None:
        while self.has_messages():
            self._call(self._queue.get_many)

    def _call(self, method: Callable[..., Any], *args: Any) -> None:
        if os.getpid() != self._made_in:
            with self._noted():
                method(*args)
            return
        thread = threading.Thread(target=method, args=args, daemon=True)
        thread.start()
        thread.join(_LOCK_WITHIN_S)
        if thread.is_alive():
            raise LockedQueueError("a queue is locked by a process that has died")

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """A process that dies in here may hold the lock."""
        by_pid, pid = self._inside["by_pid"], os.getpid()
        by_pid[pid] = True
        try:
            yield
        finally:
            by_pid[pid] = False


def _dumps(index: int) -> bytes:
    return index.to_bytes(_BYTES, "little")


def _loads(message: memoryview) -> int:
    return int.from_bytes(message, "little")
