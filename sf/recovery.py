"""The learner's latest state in shared memory: what a new learner goes on with when the old one has died.

Like a checkpoint, it holds everything that training depends on; unlike one, it is written every few seconds and is gone
with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from sf import checkpoint
from sf.memory import Field, SharedArrays

_NONE = -1


class RecoveryMemory:
    """Two copies of `capacity` bytes: one is written while the other, whole, is the latest."""

    def __init__(self, capacity: int) -> None:
        self._arrays = SharedArrays(
            [
                Field("data", (2, capacity), np.uint8),
                Field("num_bytes", (2,), np.int64),
                Field("latest", (1,), np.int64),
            ]
        )
        self._arrays["latest"][0] = _NONE

    def write(self, data: bytes) -> None:
        target = 1 - max(0, int(self._arrays["latest"][0]))
        self._arrays["data"][target, : len(data)] = np.frombuffer(data, np.uint8)
        self._arrays["num_bytes"][target] = len(data)
        self._arrays["latest"][0] = target

    def read(self) -> bytes | None:
        """The latest data; None where nothing was written yet."""
        latest = int(self._arrays["latest"][0])
        if latest == _NONE:
            return None
        return self._arrays["data"][latest, : self._arrays["num_bytes"][latest]].tobytes()


def save_remembered(
    recovery: RecoveryMemory, checkpoints: Path, keep: int, say: Callable[[str], None] = print
) -> Path | None:
    """Write a checkpoint for a learner that could not; the newest one where that has more env steps already.

    None where nothing was remembered. `say` is told which others are not whole. Raises OSError where it cannot be
    written, ValueError where no checkpoint is whole.
    """
    data = recovery.read()
    if data is None:
        return None
    remembered = checkpoint.decode(data)
    env_steps = remembered.state["env_steps"]
    newest = checkpoint.latest(checkpoints, say)
    if newest is not None and checkpoint.env_steps(newest) >= env_steps:
        return newest
    return checkpoint.save(checkpoints, remembered, env_steps, keep)
