"""The loader of a learner that other ranks may hold up, beside learners of other policies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sf.learner.batches.batch import Batch
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.batches.loaders import LOOKS_EVERY_S, Loader, SlotCopier
from sf.shared.queues import StopRequested
from sf.shared.slots import LearnerSlots
from sf.system import gpu
from sf.system.processes.stopping import StopFlag


class YieldingLoader(Loader):
    """Fills batches in a thread; where the learner is held up, new trajectories take the place of the oldest.

    Of two policies on two ranks, each may have all slots of one rank full and wait for the other rank, where the other
    policy has them: nobody would ever go on. So while a learner waits for other ranks, its slots go back to the sampler
    all the same, and what nobody has trained on is lost. At other times slots are held as they are by `AsyncLoader`
    with several policies: until they are copied.
    """

    def __init__(
        self,
        slots: LearnerSlots,
        copier: SlotCopier,
        buffers: tuple[BatchBuffer, BatchBuffer],
        device: str,
        stop: StopFlag,
    ) -> None:
        self._slots = slots
        self._copier = copier
        self._device = device
        self._stop = stop
        self._change = threading.Condition()  # over all that follows
        self._filling, self._other = buffers
        self._num_columns = self._filling.num_slots
        self._num_filled = 0
        self._oldest = 0  # column
        self._env_steps = np.zeros(self._num_columns, np.int64)  # in each column
        self._is_held_up = False
        self._lost_steps = 0
        self._error: Exception | None = None  # that ended the thread
        threading.Thread(target=self._fill, name="loader", daemon=True).start()

    def next(self) -> Batch | None:
        with self._change:
            while self._num_filled < self._num_columns:
                if isinstance(self._error, StopRequested) or self._stop.is_set():
                    return None
                if self._error is not None:
                    raise self._error
                self._change.wait(LOOKS_EVERY_S)
            filled = self._filling
            self._filling, self._other = self._other, filled
            self._num_filled = 0
            self.env_steps = int(self._env_steps.sum())
            filled.send()
            self._change.notify_all()
        return filled.receive()

    def release(self) -> None:
        self._other.release()

    @contextmanager
    def held_up(self) -> Iterator[None]:
        self._set_held_up(True)
        try:
            yield
        finally:
            self._set_held_up(False)

    def pop_lost_steps(self) -> int:
        with self._change:
            lost, self._lost_steps = self._lost_steps, 0
        return lost

    def _set_held_up(self, is_held_up: bool) -> None:
        with self._change:
            self._is_held_up = is_held_up
            self._change.notify_all()

    def _fill(self) -> None:
        try:
            gpu.take(self._device)
            while True:
                slots = self._slots.take(at_most=self._num_columns)
                while slots:
                    with self._change:
                        self._change.wait_for(lambda: self._is_held_up or self._num_filled < self._num_columns)
                        num_written = self._write(slots)
                        self._change.notify_all()
                    self._slots.give_back(slots[:num_written])
                    slots = slots[num_written:]
        except Exception as error:
            with self._change:
                self._error = error
                self._change.notify_all()

    def _write(self, slots: list[int]) -> int:
        """Copy the first of them, as many as have columns behind each other. Returns how many."""
        if self._num_filled == 0:
            self._filling.wait_until_sent()
            self._oldest = 0
        is_full = self._num_filled == self._num_columns
        column = self._oldest if is_full else self._num_filled
        written = slots[: self._num_columns - column]
        columns = slice(column, column + len(written))
        if is_full:
            self._lost_steps += int(self._env_steps[columns].sum())
            self._oldest = columns.stop % self._num_columns
        else:
            self._num_filled = columns.stop
        self._copier.copy(written, self._filling.host, column)
        self._env_steps[columns] = self._slots.arrays["env_steps"][written] * self._slots.is_own(written)
        return len(written)
