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

from sf import gpu
from sf.arrays import SharedArrays
from sf.queues import StopRequested
from sf.slots import OBS, LearnerSlots
from sf.weights import PolicyMemory

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
    def empty(
        cls, rows: SharedArrays, num_trajectories: int, state_size: int, device: str, on_host: bool = False
    ) -> Batch:
        """on_host: in host memory, from which `device` copies."""

        def new(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
            if on_host:
                return gpu.page_locked(shape, dtype, device)
            return torch.empty(shape, dtype=dtype, device=gpu.torch_device(device))

        def like(array: np.ndarray) -> Tensor:
            time_major = (array.shape[1], num_trajectories, *array.shape[2:])
            return new(time_major, torch.from_numpy(array[:0]).dtype)

        return cls(
            obs={key: like(array) for key, array in rows.named(OBS).items()},
            first=like(rows["first"]),
            state=new((num_trajectories, state_size), torch.float32),
            **{name: like(rows[name]) for name in _STEP_FIELDS},
        )

    def tensors(self) -> list[Tensor]:
        """All of them, in one order."""
        return [*self.obs.values(), self.first, self.state, *(getattr(self, name) for name in _STEP_FIELDS)]

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


class BatchBuffer:
    """A batch that is filled in host memory and trained on where the network is. On CPU the two are one.

    With a GPU it is filled in page-locked memory, time-major already, and then sent by one transfer a field, beside the
    training on the batch before.
    """

    def __init__(self, rows: SharedArrays, num_trajectories: int, state_size: int, device: str) -> None:
        """In the thread that trains."""
        self._device = device
        self._stream = gpu.CopyStream(device)
        self.host = Batch.empty(rows, num_trajectories, state_size, device, on_host=True)
        self.batch = self.host
        if device != gpu.HOST:
            self.batch = Batch.empty(rows, num_trajectories, state_size, device)
        self._sent = gpu.now(device)
        self._trained = gpu.now(device)

    def send(self) -> None:
        """The host's part is full. In any thread that has taken the device."""
        if self.batch is not self.host:
            pairs = zip(self.batch.tensors(), self.host.tensors(), strict=True)
            self._sent = self._stream.copy(pairs, after=self._trained)

    def receive(self) -> Batch:
        """The batch on the device, for what the calling thread queues from now on."""
        self._sent.hold_back()
        return self.batch

    def release(self) -> None:
        """What the calling thread has queued so far is all that reads the batch."""
        self._trained = gpu.now(self._device)

    def wait_until_sent(self) -> None:
        """The host's part may be filled anew then."""
        self._sent.wait()


class SlotCopier:
    """Copies slots into the columns of a batch in host memory."""

    def __init__(self, rows: SharedArrays, memory: PolicyMemory) -> None:
        self._obs = {key: torch.from_numpy(array) for key, array in rows.named(OBS).items()}
        self._steps = {name: torch.from_numpy(rows[name]) for name in ("first", *_STEP_FIELDS)}
        self._slot_state = memory.slot_state

    def copy(self, slots: list[int], batch: Batch, first_column: int) -> None:
        """Fill columns first_column, first_column + 1, ... The slots may be reused when this returns."""
        for column, slot in enumerate(slots, start=first_column):
            for key, source in self._obs.items():
                batch.obs[key][:, column] = source[slot]
            for name, source in self._steps.items():
                getattr(batch, name)[:, column] = source[slot]
            batch.state[column] = self._slot_state[slot]


class AsyncLoader:
    """Fills batches in a thread; `next` hands them out in turn.

    Two batches exist: one is trained on while the other is filled. The last slots of a batch go back only when the
    learner wants that batch. Else the sampler would run on while the learner is busy, and data lie here and age.
    """

    def __init__(
        self, slots: LearnerSlots, copier: SlotCopier, buffers: tuple[BatchBuffer, BatchBuffer], device: str
    ) -> None:
        self._slots = slots
        self._copier = copier
        self._device = device
        self._empty: SimpleQueue[BatchBuffer] = SimpleQueue()
        self._filled: SimpleQueue[BatchBuffer | Exception | None] = SimpleQueue()
        self._wanted: SimpleQueue[None] = SimpleQueue()
        self._trained_on: BatchBuffer | None = None
        for buffer in buffers:
            self._empty.put(buffer)
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
        self._trained_on = filled
        return None if filled is None else filled.receive()

    def release(self) -> None:
        """The batch may be overwritten, once the training that was queued on the device has read it."""
        assert self._trained_on is not None
        self._trained_on.release()
        self._empty.put(self._trained_on)

    def _fill_batches(self) -> None:
        try:
            gpu.take(self._device)
            while True:
                buffer = self._empty.get()
                buffer.wait_until_sent()
                held = self._fill(buffer.host)
                buffer.send()
                self._filled.put(buffer)
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

    def __init__(
        self, slots: LearnerSlots, copier: SlotCopier, buffer: BatchBuffer, memory: PolicyMemory, num_actors: int
    ) -> None:
        self._slots = slots
        self._memory = memory
        self._copier = copier
        self._buffer = buffer
        self._num_actors = num_actors
        self._round: list[int] = []  # collected slots, not copied yet
        self._held: list[int] = []  # copied slots whose return lets the sampler go on

    def next(self) -> Batch | None:
        """The next filled batch; None after STOP."""
        self._buffer.wait_until_sent()
        column, batch = 0, self._buffer.host
        while column < batch.num_trajectories:
            if not self._round:
                try:
                    self._collect_round()
                except StopRequested:
                    return None
            take = min(len(self._round), batch.num_trajectories - column)
            slots, self._round = self._round[:take], self._round[take:]
            self._copier.copy(slots, batch, column)
            self._held += slots
            column += take
        self._buffer.send()
        return self._buffer.receive()

    def release(self) -> None:
        """The learner has trained on the batch and published."""
        self._buffer.release()
        if not self._round:
            self._memory.flush()  # the next round is collected with the latest weights
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
