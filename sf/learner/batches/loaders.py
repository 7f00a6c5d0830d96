"""Loaders: they copy filled slots into the columns of a batch, and give each slot back when it is copied.

In asynchronous training a thread fills the next batch while the learner trains on the present one.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from queue import Empty, SimpleQueue

import numpy as np
import torch

from sf.envs import EnvSpec
from sf.learner.batches.batch import Batch
from sf.learner.batches.buffer import BatchBuffer
from sf.shared.policy_view import PolicyView
from sf.shared.queues import StopRequested
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.rows import step_arrays
from sf.shared.slots import LearnerSlots
from sf.shared.weights import SharedWeights
from sf.system import gpu
from sf.system.processes.stopping import StopFlag

LOOKS_EVERY_S = 1.0  # the learner, while it waits for a batch, whether the run is to stop


class Loader:
    """Fills the batches of a learner.

    env_steps: in the batch that `next` has given last; its other samples are no decisions. has_batch: whether that
    batch is to be trained on; else only its env steps count.
    """

    env_steps = 0
    has_batch = True

    def next(self) -> Batch | None:
        """The next filled batch; None after a stop. The one before must have been released."""
        raise NotImplementedError

    def release(self) -> None:
        """The learner has trained on the batch, or queued all that reads it: it may be overwritten after that."""
        raise NotImplementedError

    def held_up(self) -> AbstractContextManager[None]:
        """Opened while the learner, which has a batch, waits for other ranks."""
        return nullcontext()

    def pop_lost_steps(self) -> int:
        """Env steps since the last call that were taken, and that nobody will train on."""
        return 0

    def metrics(self) -> dict[str, float]:
        """Returns the metrics that a report of the learner has of the loader, by name."""
        return {}


class SlotCopier:
    """Copies slots into the columns of a batch in host memory.

    The steps of those that are not the learner's own, and that it has for what its critic sees, are not valid there.
    spec: of the policy.
    """

    def __init__(self, slots: LearnerSlots, states: RecurrentStates, spec: EnvSpec) -> None:
        self._slots = slots
        self._view = PolicyView(spec)
        self._fields = {name: torch.from_numpy(array) for name, array in step_arrays(slots.arrays).items()}
        self._states = states.of_slots

    def copy(self, slots: list[int], batch: Batch, first_column: int) -> None:
        """Fill columns first_column, first_column + 1, ... The slots may be reused when this returns."""
        named = batch.named().items()
        pairs = [pair for name, target in named for pair in self._view.pairs(name, target, self._fields[name])]
        for column, slot in enumerate(slots, start=first_column):
            for target, source in pairs:
                target[:, column] = source[slot]
            batch.state[column] = self._states[slot]
        for column in np.flatnonzero(~self._slots.is_own(slots)).tolist():
            batch.valid[:, first_column + column] = False
            if self._view.is_part:  # the choice of another kind may be one that the policy lacks
                batch.discrete[:, first_column + column] = 0


class AsyncLoader(Loader):
    """Fills batches in a thread; `next` hands them out in turn.

    There are two batches: one is trained on while the other is filled. The last slots of a batch go back only when the
    learner wants that batch. Otherwise the sampler would run on while the learner is busy, and its data would grow old
    here.
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
        self._empty: SimpleQueue[BatchBuffer] = SimpleQueue()
        self._filled: SimpleQueue[BatchBuffer | Exception | None] = SimpleQueue()
        self._wanted: SimpleQueue[None] = SimpleQueue()
        self._trained_on: BatchBuffer | None = None
        for buffer in buffers:
            self._empty.put(buffer)
        self._thread = threading.Thread(target=self._fill_batches, name="loader", daemon=True)
        self._thread.start()

    def next(self) -> Batch | None:
        """See `Loader.next`. Raises the exception that ended the thread."""
        self._wanted.put(None)
        filled = self._next_filled()
        if isinstance(filled, Exception):
            raise filled
        self._trained_on = filled
        if filled is None:
            return None
        self.env_steps = filled.env_steps
        return filled.receive()

    def _next_filled(self) -> BatchBuffer | Exception | None:
        """The thread may hang in a queue that a dead process has locked: then the stop does not come from there."""
        while True:
            with suppress(Empty):
                return self._filled.get(timeout=LOOKS_EVERY_S)
            if self._stop.is_set():
                return None

    def release(self) -> None:
        assert self._trained_on is not None
        self._trained_on.release()
        self._empty.put(self._trained_on)

    def _fill_batches(self) -> None:
        try:
            gpu.take(self._device)
            while True:
                buffer = self._empty.get()
                buffer.wait_until_sent()
                held = self._fill(buffer)
                buffer.send()
                self._filled.put(buffer)
                self._wanted.get()
                self._slots.give_back(held)
        except StopRequested:
            self._filled.put(None)
        except Exception as error:
            self._filled.put(error)

    def _fill(self, buffer: BatchBuffer) -> list[int]:
        """Returns the slots that are copied and not given back yet."""
        batch, column, buffer.env_steps = buffer.host, 0, 0
        held: list[int] = []
        while column < buffer.num_slots:
            slots = self._slots.take(at_most=buffer.num_slots - column)
            self._copier.copy(slots, batch, column)
            buffer.env_steps += self._slots.env_steps(slots)
            column += len(slots)
            held += slots
            if self._slots.supply_beside(held) < buffer.num_slots - column:
                self._slots.give_back(held)
                held = []
        return held


class SyncLoader(Loader):
    """Fills a batch from whole rounds of collection, in the order of the actors, so that every run is the same.

    A round is one slot of every actor. The sampler stands still from the end of a round until its slots are given back.
    Where the batch needs more rounds, that is at once, else when the learner has trained on the last batch that has a
    part of the round.
    """

    def __init__(
        self, slots: LearnerSlots, copier: SlotCopier, buffer: BatchBuffer, weights: SharedWeights, num_actors: int
    ) -> None:
        self._slots = slots
        self._weights = weights
        self._copier = copier
        self._buffer = buffer
        self._num_actors = num_actors
        self._column = self._num_env_steps = 0  # of the batch that is being filled
        self._arriving: list[int] = []  # slots of the round that is being collected
        self._round: list[int] = []  # slots of a collected round, not copied yet
        self._held: list[int] = []  # copied slots whose return lets the sampler go on

    def next(self) -> Batch | None:
        """The next filled batch; None after a stop. Where a queue raises something else, the next call goes on."""
        self._buffer.wait_until_sent()
        batch = self._buffer.host
        while self._column < self._buffer.num_slots:
            if not self._round:
                try:
                    self._collect_round()
                except StopRequested:
                    return None
            take = min(len(self._round), self._buffer.num_slots - self._column)
            slots, self._round = self._round[:take], self._round[take:]
            self._copier.copy(slots, batch, self._column)
            self._num_env_steps += self._slots.env_steps(slots)
            self._held += slots
            self._column += take
        self.env_steps = self._num_env_steps
        self._column = self._num_env_steps = 0
        self._buffer.send()
        return self._buffer.receive()

    def release(self) -> None:
        self._buffer.release()
        if not self._round:
            self._weights.flush()  # the next round is collected with the latest weights
            self._give_back()

    def _collect_round(self) -> None:
        self._give_back()
        while len(self._arriving) < self._num_actors:
            self._arriving += self._slots.take(at_most=self._num_actors - len(self._arriving))
        self._round = sorted(self._arriving, key=lambda slot: int(self._slots.arrays["actor"][slot]))
        self._arriving = []

    def _give_back(self) -> None:
        if self._held:
            self._slots.give_back(self._held)
            self._held = []
