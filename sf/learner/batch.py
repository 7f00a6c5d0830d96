"""From filled slots to time-major batches on the device: the only place where axes are swapped.

A batch is filled slot by slot as slots arrive, and each slot goes back to the free list as soon as it is copied. In
asynchronous training a thread fills the next batch while the learner trains on the present one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
import torch
from torch import Tensor

from sf.memory import SharedArrays
from sf.policy_memory import PolicyMemory
from sf.queues import StopRequested
from sf.slots import OBS, LearnerSlots

_STEP_FIELDS = (
    "discrete",
    "continuous",
    "log_prob",
    "value",
    "policy_version",
    "reward",
    "terminated",
    "valid",
)


@dataclass(frozen=True)
class Batch:
    """B trajectories of T steps on the device.

    obs: each [T+1, B, ...]; first: [T+1, B] bool; state: [B, S] float32, recurrent state before row 0;
    discrete: [T, B, D] int32; continuous: [T, B, C] float32; the others [T, B].
    """

    obs: dict[str, Tensor]
    first: Tensor
    state: Tensor
    discrete: Tensor
    continuous: Tensor
    log_prob: Tensor
    value: Tensor
    policy_version: Tensor
    reward: Tensor
    terminated: Tensor
    valid: Tensor

    @classmethod
    def empty(cls, rows: SharedArrays, num_trajectories: int, state_size: int, device: torch.device) -> Batch:
        def like(array: np.ndarray) -> Tensor:
            time_major = (array.shape[1], num_trajectories, *array.shape[2:])
            return torch.empty(time_major, dtype=torch.from_numpy(array[:0]).dtype, device=device)

        return cls(
            obs={key: like(array) for key, array in rows.named(OBS).items()},
            first=like(rows["first"]),
            state=torch.empty(num_trajectories, state_size, device=device),
            **{name: like(rows[name]) for name in _STEP_FIELDS},
        )

    @property
    def num_trajectories(self) -> int:
        return self.first.shape[1]

    @property
    def num_samples(self) -> int:
        return self.reward.numel()

    def columns(self, index: Tensor) -> Batch:
        """The trajectories at `index` [b]."""
        return Batch(
            obs={key: value.index_select(1, index) for key, value in self.obs.items()},
            first=self.first.index_select(1, index),
            state=self.state.index_select(0, index),
            **{name: getattr(self, name).index_select(1, index) for name in _STEP_FIELDS},
        )

    def steps(self, index: Tensor) -> Batch:
        """The steps at `index` [M] of all T x B, as one trajectory of M [M, 1]: for a network without memory.

        To such a network a trajectory of unrelated steps is like any other. Its last observation is never used.
        """
        with_last = torch.cat((index, index[-1:]))
        return Batch(
            obs={key: value[:-1].flatten(0, 1).index_select(0, with_last)[:, None] for key, value in self.obs.items()},
            first=torch.ones(len(with_last), 1, dtype=torch.bool, device=index.device),
            state=self.state[:1],
            **{name: getattr(self, name).flatten(0, 1).index_select(0, index)[:, None] for name in _STEP_FIELDS},
        )


class SlotCopier:
    """Copies slots into the columns of a batch."""

    def __init__(self, rows: SharedArrays, memory: PolicyMemory, device: torch.device) -> None:
        self._memory = memory
        self._obs = {key: torch.from_numpy(array) for key, array in rows.named(OBS).items()}
        self._steps = {name: torch.from_numpy(rows[name]) for name in ("first", *_STEP_FIELDS)}
        self._stream = torch.cuda.Stream() if device.type == "cuda" else None
        if device.type == "cuda":
            _pin(rows.buffer)

    def note_last_use(self) -> None:
        """Later copies wait, on the device, for the work that is queued there now."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())

    def copy(self, slots: list[int], batch: Batch, first_column: int) -> None:
        """Fill columns first_column, first_column + 1, ... The slots may be reused when this returns."""
        if self._stream is None:
            self._copy(slots, batch, first_column)
            return
        with torch.cuda.stream(self._stream):
            self._copy(slots, batch, first_column)
        self._stream.synchronize()

    def _copy(self, slots: list[int], batch: Batch, first_column: int) -> None:
        for column, slot in enumerate(slots, start=first_column):
            for key, source in self._obs.items():
                batch.obs[key][:, column].copy_(source[slot], non_blocking=True)
            for name, source in self._steps.items():
                getattr(batch, name)[:, column].copy_(source[slot], non_blocking=True)
            batch.state[column].copy_(self._memory.slot_state[slot], non_blocking=True)


class AsyncLoader:
    """Fills batches in a thread; `next` hands them out in turn.

    Two batches exist: one is trained on while the other is filled. The last slots of a batch go back only when the
    learner wants that batch. Else the sampler would run on while the learner is busy, and data lie here and age.
    """

    def __init__(self, slots: LearnerSlots, copier: SlotCopier, batches: tuple[Batch, Batch]) -> None:
        self._slots = slots
        self._copier = copier
        self._empty: SimpleQueue[Batch] = SimpleQueue()
        self._filled: SimpleQueue[Batch | Exception | None] = SimpleQueue()
        self._wanted: SimpleQueue[None] = SimpleQueue()
        for batch in batches:
            self._empty.put(batch)
        self._thread = threading.Thread(target=self._fill_batches, name="loader", daemon=True)
        self._thread.start()

    def next(self) -> Batch | None:
        """The next filled batch; None after STOP. The one before must have been released.

        Raises what went wrong in the thread.
        """
        self._wanted.put(None)
        filled = self._filled.get()
        if isinstance(filled, Exception):
            raise filled
        return filled

    def release(self, batch: Batch) -> None:
        """The batch may be overwritten, once the training that was queued on the device has read it."""
        self._copier.note_last_use()
        self._empty.put(batch)

    def _fill_batches(self) -> None:
        try:
            while True:
                batch = self._empty.get()
                held = self._fill(batch)
                self._filled.put(batch)
                self._wanted.get()
                self._slots.give_back(held)
        except StopRequested:
            self._filled.put(None)
        except Exception as error:
            self._filled.put(error)

    def _fill(self, batch: Batch) -> list[int]:
        """Returns slots that have been copied and not been given back."""
        column = 0
        held: list[int] = []
        while column < batch.num_trajectories:
            slots = self._slots.take(at_most=batch.num_trajectories - column)
            self._copier.copy(slots, batch, column)
            column += len(slots)
            held += slots
            if self._slots.supply_beside(held) < batch.num_trajectories - column:
                self._slots.give_back(held)
                held = []
        return held


class SyncLoader:
    """Fills a batch from whole rounds of collection, in the order of the actors, so that every run is the same.

    A round is one slot of every actor. The sampler stands still from the end of a round until its slots are given back:
    at once where the batch wants more rounds, else when the learner has trained on the last batch cut from the round.
    """

    def __init__(self, slots: LearnerSlots, copier: SlotCopier, batch: Batch, num_actors: int) -> None:
        self._slots = slots
        self._copier = copier
        self._batch = batch
        self._num_actors = num_actors
        self._round: list[int] = []  # collected slots, not copied yet
        self._held: list[int] = []  # copied slots whose return lets the sampler go on

    def next(self) -> Batch | None:
        """The next filled batch; None after STOP."""
        column = 0
        while column < self._batch.num_trajectories:
            if not self._round:
                try:
                    self._collect_round()
                except StopRequested:
                    return None
            take = min(len(self._round), self._batch.num_trajectories - column)
            slots, self._round = self._round[:take], self._round[take:]
            self._copier.copy(slots, self._batch, column)
            self._held += slots
            column += take
        return self._batch

    def release(self, batch: Batch) -> None:
        """The learner has trained on the batch and published."""
        if not self._round:
            self._give_back()

    def _collect_round(self) -> None:
        self._give_back()
        while len(self._round) < self._num_actors:
            self._round += self._slots.take(at_most=self._num_actors - len(self._round))
        self._round.sort(key=lambda slot: int(self._slots.arrays["actor"][slot]))

    def _give_back(self) -> None:
        if self._held:
            self._slots.give_back(self._held)
            self._held = []


def _pin(buffer: np.ndarray) -> None:
    """Page-lock shared memory in place, so that the GPU copies from it directly."""
    memory = torch.from_numpy(buffer)
    torch.cuda.check_error(int(torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), memory.numel(), 0)))
