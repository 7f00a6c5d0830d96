"""Stops real code of one process halfway: at any of its accesses to shared memory or to a queue.

The arrays and queues of this module stand before the real ones. Where an access is due, the process may die, or
others may run, as if the system had switched to them there.
"""

import numpy as np
from hypothesis import HealthCheck, settings

LIFE_SETTINGS = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],  # the machine may be busy
)


class Killed(Exception):  # noqa: N818  it is no error
    """The process has died."""


class WouldWait(Exception):  # noqa: N818  it is no error
    """The process waits for a message, and there is none."""


class Accesses:
    """Numbers the accesses of a process from 0, and does before them what was asked for."""

    def __init__(self, meanwhile=None, dies_at=None):
        """meanwhile: functions by the number of the access before which they are called."""
        self._meanwhile = meanwhile or {}
        self._dies_at = dies_at
        self._count = 0

    def note(self):
        number, self._count = self._count, self._count + 1
        if number in self._meanwhile:
            self._meanwhile[number]()
        if number == self._dies_at:
            raise Killed


class HalfwayArray:
    """Written element by element."""

    def __init__(self, array, accesses):
        self.array = array
        self._accesses = accesses

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        self._accesses.note()
        return self.array[index].copy()

    def __setitem__(self, index, value):
        positions = np.arange(self.array.size).reshape(self.array.shape)[index]
        for position, element in zip(positions.flat, np.broadcast_to(value, positions.shape).flat, strict=True):
            self._accesses.note()
            self.array.flat[position] = element

    def __eq__(self, other):
        self._accesses.note()
        return self.array == getattr(other, "array", other)

    def __ne__(self, other):
        self._accesses.note()
        return self.array != getattr(other, "array", other)

    def max(self):
        self._accesses.note()
        return self.array.max()

    __hash__ = None


class HalfwayQueue:
    """Never waits; sends each message `copies` times."""

    def __init__(self, queue, accesses, copies=1):
        self._queue = queue
        self._accesses = accesses
        self._copies = copies

    def put(self, index):
        self.put_many([index])

    def put_many(self, indices):
        indices = list(indices)
        self._accesses.note()
        self._queue.put_many(indices * self._copies)

    def get_many(self, at_most=1024):
        self._accesses.note()
        if not self._queue.has_messages():
            raise WouldWait
        return self._queue.get_many(at_most)

    def drain(self):
        self._accesses.note()
        self._queue.drain()
