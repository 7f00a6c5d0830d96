"""Queues within one process, for a run with `--serial true`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from sf.shared.queues.index_queue import MAX_AT_ONCE, IndexQueue, StopRequested


class LocalQueue(IndexQueue):
    """A deque. Nobody else can fill it while its reader waits, so the reader does the others' work itself.

    refill: does a piece of that work. It is called as long as the queue is empty, and may raise what ends the wait.
    """

    def __init__(self) -> None:
        self.refill: Callable[[], None] | None = None
        self._indices: deque[int] = deque()
        self._is_stopped = False

    def put_many(self, indices: Iterable[int]) -> None:
        self._indices.extend(indices)

    def get_many(self, at_most: int = MAX_AT_ONCE) -> list[int]:
        while not self._indices:
            if self._is_stopped:
                raise StopRequested
            assert self.refill is not None, "a part of the run waits for itself"
            self.refill()
        return [self._indices.popleft() for _ in range(min(at_most, len(self._indices)))]

    def stop(self) -> None:
        self._is_stopped = True

    def has_messages(self) -> bool:
        return bool(self._indices)

    def drain(self) -> None:
        self._indices.clear()


class LocalQueues:
    """See `sf.shared.queues.Queues`."""

    def make(self, capacity: int) -> LocalQueue:
        return LocalQueue()

    def may_be_locked_by(self, pid: int | None) -> bool:
        return False
