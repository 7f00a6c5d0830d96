"""FIFO queues between processes that carry indices, and nothing else.

One message type a queue: an index, or STOP. The data that an index stands for lies in shared memory. A message is four
bytes, so nothing is pickled.
"""

from __future__ import annotations

import queue
import struct
from collections.abc import Iterable

import faster_fifo

STOP = -1

_WAIT_S = 3600.0  # faster-fifo knows no endless wait; a wait that ran out is simply begun again
_MESSAGE = struct.Struct("<i")
_BYTES_PER_MESSAGE = 32  # a message and what faster-fifo stores beside it, with room


def _dump(index: int) -> bytes:
    return _MESSAGE.pack(index)


def _load(message: bytes) -> int:
    return _MESSAGE.unpack(message)[0]


class IndexQueue:
    """Many producers, many consumers; holds up to `capacity` indices (and a few STOPs), so a put never waits."""

    def __init__(self, capacity: int) -> None:
        self._queue = faster_fifo.Queue(max_size_bytes=(capacity + 64) * _BYTES_PER_MESSAGE, loads=_load, dumps=_dump)

    def put(self, index: int) -> None:
        self._queue.put(index)

    def put_many(self, indices: Iterable[int]) -> None:
        self._queue.put_many(list(indices))

    def get_many(self, at_most: int = 1_000_000) -> list[int]:
        """Waiting indices, oldest first, at most so many; waits for the first. More may be waiting still."""
        while True:
            try:
                return self._queue.get_many(timeout=_WAIT_S, max_messages_to_get=at_most)
            except queue.Empty:  # noqa: PERF203  once an hour
                continue

    def get_many_nowait(self, at_most: int = 1_000_000) -> list[int]:
        """Waiting indices, possibly none."""
        try:
            return self._queue.get_many(block=False, max_messages_to_get=at_most)
        except queue.Empty:
            return []
