"""Loaders that draw batches from the buffer of games, into which they put the slots that have come.

They give slots back as soon as they are copied, also while training waits for games.
"""

from __future__ import annotations

import threading
import time

from sf.learner.batches.batch import Batch
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.batches.loaders import LOOKS_EVERY_S, Loader
from sf.learner.games.supply import GameSupply
from sf.shared.queues import StopRequested
from sf.shared.slots import LearnerSlots
from sf.system.processes.stopping import StopFlag


class SyncGamesLoader(Loader):
    """Trains as often as the positions allow, and collects a round then: one slot of every actor, in their order. So
    every run is the same. The sampler stands still while the learner trains."""

    def __init__(self, slots: LearnerSlots, supply: GameSupply, buffer: BatchBuffer, num_actors: int) -> None:
        self._slots, self._supply, self._buffer, self._num_actors = slots, supply, buffer, num_actors
        self._arriving: list[int] = []  # slots of the round that is being collected
        self._held: list[int] = []  # whose return lets the sampler go on

    def next(self) -> Batch | None:
        """See `Loader.next`. Where a queue raises something other than a stop, the next call goes on."""
        self._buffer.wait_until_sent()
        if not self._supply.can_fill(self._buffer.host):
            try:
                self._collect_round()
            except StopRequested:
                return None
        self.env_steps = self._supply.pop_env_steps()
        self.has_batch = self._supply.can_fill(self._buffer.host)
        return _filled(self._supply, self._buffer, self.has_batch)

    def release(self) -> None:
        self._buffer.release()

    def metrics(self) -> dict[str, float]:
        return self._supply.metrics()

    def _collect_round(self) -> None:
        if self._held:
            self._slots.give_back(self._held)
            self._held = []
        while len(self._arriving) < self._num_actors:
            self._arriving += self._slots.take(at_most=self._num_actors - len(self._arriving))
        self._held, self._arriving = self._arriving, []
        self._supply.add(sorted(self._held, key=lambda slot: int(self._slots.arrays["actor"][slot])))


class AsyncGamesLoader(Loader):
    """Takes slots in a thread, which never waits for the learner.

    While there is nothing to train on, `next` returns once a second, so that the run counts its env steps and reports.
    """

    def __init__(
        self, slots: LearnerSlots, supply: GameSupply, buffer: BatchBuffer, num_actors: int, stop: StopFlag
    ) -> None:
        self._slots, self._supply, self._buffer, self._num_actors = slots, supply, buffer, num_actors
        self._stop = stop
        self.changed = threading.Condition()  # guards the supply, and what follows
        self._error: Exception | None = None  # that ended the thread
        threading.Thread(target=self._take, name="loader", daemon=True).start()

    def next(self) -> Batch | None:
        """See `Loader.next`. Raises the exception that ended the thread."""
        self._buffer.wait_until_sent()
        supply, returns_at = self._supply, time.monotonic() + LOOKS_EVERY_S
        with self.changed:
            while not supply.can_fill(self._buffer.host):
                if self._stop.is_set() or isinstance(self._error, StopRequested):
                    return None
                if self._error is not None:
                    raise self._error
                if supply.has_news and time.monotonic() >= returns_at:
                    break
                self.changed.wait(LOOKS_EVERY_S)
            self.env_steps = supply.pop_env_steps()
            self.has_batch = supply.can_fill(self._buffer.host)
            return _filled(supply, self._buffer, self.has_batch)

    def release(self) -> None:
        self._buffer.release()

    def metrics(self) -> dict[str, float]:
        with self.changed:
            return self._supply.metrics()

    def _take(self) -> None:
        try:
            while True:
                slots = self._slots.take(at_most=self._num_actors)
                with self.changed:
                    self._supply.add(slots)
                    self.changed.notify_all()
                self._slots.give_back(slots)
        except Exception as error:
            with self.changed:
                self._error = error
                self.changed.notify_all()


def _filled(supply: GameSupply, buffer: BatchBuffer, has_batch: bool) -> Batch:
    """Returns a batch on its way to the device, which nobody reads where there is nothing to train on."""
    if has_batch:
        supply.fill(buffer.host)
        buffer.send_as_it_is()
    else:
        supply.say_what_is_missing()
    return buffer.receive()
