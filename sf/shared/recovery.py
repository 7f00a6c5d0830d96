"""The learner's latest state in shared memory, for the learner that takes over when this one has died.

Like a checkpoint, it holds everything that training depends on. Unlike one, it is written every few seconds and ends
with the run. The training thread writes it, so the tensors are copied as they are, without a checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sf.storage import checkpoint, checkpoint_names
from sf.storage.checkpoint import Checkpoint
from sf.system.arrays import Field, SharedArrays

_NONE = -1
_ALIGNMENT = 64  # of each tensor
_DTYPES = {
    str(dtype): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}


class RecoveryMemory:
    """Two copies of a state in `capacity` bytes each: one is written while the other, whole, is the latest.

    A copy begins with a header, JSON that names the tensors and holds the numbers of the state. The bytes of the
    tensors follow. `number` counts the writes, and is 0 while a copy is written. So a reader notices that the writer
    has overtaken it, by another number than before, and reads again. Only one process may write at a time.
    """

    def __init__(self, capacity: int) -> None:
        self._arrays: Mapping[str, np.ndarray] | SharedArrays = SharedArrays(
            [
                Field("data", (2, capacity), np.uint8),
                Field("num_bytes", (2,), np.int64),
                Field("header_bytes", (2,), np.int64),
                Field("number", (2,), np.int64),
                Field("latest", (1,), np.int64),
            ]
        )
        self._arrays["latest"][0] = _NONE

    def write(self, state: Checkpoint) -> None:
        """Until this returns, the copy that was the latest stays so, whole, even if the process dies in here."""
        arrays = self._arrays
        target = 1 - max(0, int(arrays["latest"][0]))
        number = 1 + int(arrays["number"].max())
        arrays["number"][target] = 0
        header = _header(state)
        copy = torch.from_numpy(arrays["data"][target])
        copy[: len(header)] = torch.frombuffer(bytearray(header), dtype=torch.uint8)
        end = len(header)
        for tensor in state.tensors.values():
            place, end = _place(tensor.dtype, tensor.shape, end)
            copy[place].view(tensor.dtype).view(tensor.shape).copy_(tensor)
        arrays["header_bytes"][target] = len(header)
        arrays["num_bytes"][target] = end
        arrays["number"][target] = number
        arrays["latest"][0] = target

    def read(self) -> Checkpoint | None:
        """The latest state, in memory of its own; None where nothing was written yet."""
        arrays = self._arrays
        while True:
            source = int(arrays["latest"][0])
            if source == _NONE:
                return None
            number = int(arrays["number"][source])
            header_bytes = int(arrays["header_bytes"][source])
            data = arrays["data"][source, : int(arrays["num_bytes"][source])].copy()
            if number > 0 and int(arrays["number"][source]) == number:
                return _decode(data, header_bytes)


def save_remembered(recovery: RecoveryMemory, checkpoints: Path, keep: int) -> Path | None:
    """Write a checkpoint for a learner that could not, unless the newest one has as many env steps. Returns the path.

    None where nothing was remembered. Raises OSError where it cannot
    be written, ValueError where there are checkpoints and none is whole.
    """
    remembered = recovery.read()
    if remembered is None:
        return None
    env_steps = remembered.state["env_steps"]
    try:
        newest = checkpoint.latest(checkpoints)
    except checkpoint.UnreadableError:
        newest = None  # the disk may take a new one all the same
    if newest is not None and checkpoint_names.env_steps(newest) >= env_steps:
        return newest
    return checkpoint.save(checkpoints, remembered, env_steps, keep)


def _header(state: Checkpoint) -> bytes:
    tensors = {name: [str(tensor.dtype), list(tensor.shape)] for name, tensor in state.tensors.items()}
    return json.dumps({"tensors": tensors, "state": state.state}).encode()


def _decode(data: np.ndarray, header_bytes: int) -> Checkpoint:
    """The state in a whole copy."""
    header = json.loads(data[:header_bytes].tobytes())
    tensors: dict[str, Tensor] = {}
    memory, end = torch.from_numpy(data), header_bytes
    for name, (dtype_name, shape) in header["tensors"].items():
        dtype = _DTYPES[dtype_name]
        place, end = _place(dtype, shape, end)
        # A copy: torch.set_rng_state reads from the start of the storage, not of the tensor.
        tensors[name] = memory[place].view(dtype).view(shape).clone()
    return Checkpoint(tensors, header["state"])


def _place(dtype: torch.dtype, shape: tuple[int, ...] | torch.Size | list[int], end: int) -> tuple[slice, int]:
    """Where the bytes of the next tensor begin and end. end: of what is before them."""
    begin = -(-end // _ALIGNMENT) * _ALIGNMENT
    end = begin + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return slice(begin, end), end
