"""What crosses between shared RAM and the device for a batch of the policy worker: observations, recurrent states,
answers.

Memory of a batch is allocated once, and overwritten by the next one: every batch ends with an event that comes after
all its transfers. What the device does for a batch of a size is the same each time, so it can be recorded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sf.envs import EnvSpec
from sf.model.acting import AnswerLayout
from sf.shared.policy_view import PolicyView
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.rows import OBS
from sf.system import gpu
from sf.system.arrays import SharedArrays

_LARGE = 2048  # bytes of an observation


class ObsGather:
    """Collects the observations of a batch: a GPU reads large ones where they are, small ones are copied for it."""

    def __init__(self, rows: SharedArrays, spec: EnvSpec, max_rows: int, device: str) -> None:
        """spec: with the observations that the network reads."""
        self._device = device
        self._index = gpu.page_locked((max_rows,), torch.int64, device)
        self._staged: dict[str, Tensor] = {}  # observations of a batch
        self._pairs: list[tuple[Tensor, Tensor]] = []  # these and all rows [num_slots * (T+1), ...], part by part
        self._mapped: dict[str, _Rows] = {}
        view = PolicyView(spec)
        layout = view.layout(rows).named(OBS)
        for key, array in rows.named(OBS).items():
            if key not in spec.obs_space.spaces:
                continue
            own = torch.from_numpy(layout[key])[:, 0]
            is_whole = own.shape[1:] == array.shape[2:] and own.numpy().dtype == array.dtype
            is_large = device != gpu.HOST and is_whole and own[0].nbytes >= _LARGE
            mapped = gpu.mapped(array, device) if is_large else None
            if mapped is not None:
                self._mapped[key] = _Rows.of(mapped.flatten(0, 1))
            else:
                self._staged[key] = batch = gpu.page_locked((max_rows, *own.shape[1:]), own.dtype, device)
                self._pairs += view.pairs(OBS + key, batch, torch.from_numpy(array).flatten(0, 1))

    def stage(self, positions: np.ndarray) -> None:
        """The host's part. positions: [N] rows of [num_slots * (T+1)]."""
        index = torch.from_numpy(positions)
        for staged, rows in self._pairs:
            if staged.dtype == rows.dtype:
                torch.index_select(rows, 0, index, out=staged[: len(index)])
            else:
                staged[: len(index)] = rows.index_select(0, index)
        if self._mapped:
            self._index[: len(index)] = index

    def there(self, num: int) -> dict[str, Tensor]:
        """The observations [num, ...] of what was staged, on the device: its own part."""
        batch = {key: _sent(staged[:num], self._device) for key, staged in self._staged.items()}
        if self._mapped:
            index = _sent(self._index[:num], self._device)
            batch |= {key: rows.taken(index) for key, rows in self._mapped.items()}
        return batch


def _sent(staged: Tensor, device: str) -> Tensor:
    return staged.to(gpu.torch_device(device), non_blocking=True)


class _Rows(NamedTuple):
    """Rows in memory that a GPU reads over the bus, eight bytes at a time where that goes.

    numbers: [num_rows, ...], of `dtype` and [num_rows, *shape] in truth.
    """

    numbers: Tensor
    shape: torch.Size
    dtype: torch.dtype

    @classmethod
    def of(cls, rows: Tensor) -> _Rows:
        flat = rows.flatten(1)
        is_even = flat[0].nbytes % 8 == 0
        return cls(flat.view(torch.int64) if is_even else flat, rows.shape[1:], rows.dtype)

    def taken(self, index: Tensor) -> Tensor:
        """Those at `index` [N], in memory of the GPU: [N, *shape]."""
        return self.numbers.index_select(0, index).view(self.dtype).view(-1, *self.shape)


class States:
    """The recurrent states of a batch, between shared RAM and the device. See `RecurrentStates` for the two copies."""

    def __init__(self, shared: RecurrentStates, max_rows: int, device: str) -> None:
        self._device = device
        self._of_slots = shared.of_slots.numpy()
        num_copies, num_actors, state_size = shared.of_actors.shape
        self._all = shared.of_actors.view(num_copies * num_actors, state_size)
        self._num_actors = num_actors
        self._before = gpu.page_locked((max_rows, state_size), torch.float32, device)
        self._after = gpu.page_locked((max_rows, state_size), torch.float32, device)
        self._first = gpu.page_locked((max_rows,), torch.bool, device)

    def stage(self, actors: np.ndarray, numbers: np.ndarray, first: np.ndarray) -> None:
        """The host's part: the states that requests `numbers` [N] of `actors` [N] begin with; zero where `first`
        [N]."""
        self._first[: len(first)].numpy()[:] = first
        state = self._before[: len(actors)]
        if state.shape[1]:
            torch.index_select(self._all, 0, self._positions(actors, numbers - 1), out=state)
            state.numpy()[first] = 0.0

    def there(self, num: int) -> tuple[Tensor, Tensor]:
        """What was staged, on the device: states [num, S] and whether they are first [num]."""
        return _sent(self._before[:num], self._device), _sent(self._first[:num], self._device)

    def keep(self, slots: np.ndarray, rows: np.ndarray) -> None:
        """Beside each of `slots` [N] that begins with this row, the state that was just staged."""
        begins = np.flatnonzero(rows == 0)
        if self._all.shape[1] and len(begins):
            self._of_slots[slots[begins]] = self._before.numpy()[begins]

    def send(self, state: Tensor) -> None:
        """Queue the transfer of the new states [N, S] to the host."""
        gpu.queue_copy(self._after[: len(state)], state, self._device)

    def arrived(self, num: int) -> Tensor:
        """What was sent, [num, S], on the host."""
        return self._after[:num]

    def write(self, actors: np.ndarray, numbers: np.ndarray) -> None:
        """What was sent has arrived: it is where the next requests of `actors` look for it."""
        if self._all.shape[1]:
            self._all.index_copy_(0, self._positions(actors, numbers), self._after[: len(actors)])

    def _positions(self, actors: np.ndarray, numbers: np.ndarray) -> Tensor:
        """Rows of the copy that `numbers` write."""
        return torch.from_numpy(numbers % 2 * self._num_actors + actors)


class AnswersToHost:
    """Brings the answers of a batch to the host in one transfer."""

    def __init__(self, layout: AnswerLayout, max_rows: int, device: str) -> None:
        self._device = device
        self._layout = layout
        self._host = gpu.page_locked((max_rows, layout.width), torch.int32, device)

    def send(self, packed: Tensor) -> None:
        """Queue the transfer of what `Acting` gives."""
        gpu.queue_copy(self._host[: len(packed)], packed, self._device)

    def arrived(self, num: int) -> Tensor:
        """What was sent, [num, ...] int32, on the host."""
        return self._host[:num]

    def unpacked(self, num: int) -> dict[str, np.ndarray]:
        """Returns the same as arrays [num, ...], by the names of the fields."""
        return self._layout.unpack(self._host[:num].numpy())
