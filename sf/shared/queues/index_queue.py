"""What every kind of queue promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

MAX_AT_ONCE = 1024  # messages that a reader takes, where it names no number


class StopRequested(Exception):  # noqa: N818  it is no error
    """The parent asked this process to stop while it waited for a message."""


class LockedQueueError(RuntimeError):
    """A process has died inside of a queue whose lock it held, so nobody gets in any more."""


class IndexQueue(ABC):
    """Holds up to `capacity` indices (from 0 on), so that a put never waits.

    Can be passed to a child process (as an argument of `multiprocessing.Process`).
    """

    def put(self, index: int) -> None:
        self.put_many((index,))

    @abstractmethod
    def put_many(self, indices: Iterable[int]) -> None:
        """Raises LockedQueueError in the process that made the queue, which never hangs here."""

    @abstractmethod
    def get_many(self, at_most: int = MAX_AT_ONCE) -> list[int]:
        """Waiting indices, oldest first, at most this many; waits for the first. More may be waiting still.

        Raises StopRequested after `stop`: indices that wait may be dropped then.
        """

    @abstractmethod
    def stop(self) -> None:
        """Have the reader raise StopRequested, also where it waits for an index."""

    @abstractmethod
    def has_messages(self) -> bool:
        """Whether something waits for the reader. Never waits itself."""

    @abstractmethod
    def drain(self) -> None:
        """Forget all messages. Not for a queue whose reader lives. Raises LockedQueueError as `put_many`."""


class Queues(Protocol):
    """Makes the queues of one run."""

    def make(self, capacity: int) -> IndexQueue:
        """Raises ValueError where the system does not grant the room."""

    def may_be_locked_by(self, pid: int | None) -> bool:
        """Whether a process that has died may have left one of them locked for ever."""
