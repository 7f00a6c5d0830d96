"""What learner and policy workers of one policy share: the weights, and the recurrent state of every actor.

On CPU it lies in shared RAM that the parent allocates. With a GPU the large tensors lie in GPU memory that the learner
allocates and shares with the policy workers, so neither weights nor recurrent states cross the bus; only the
version numbers stay in shared RAM.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, reduction
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing  # registers how a tensor in GPU memory is passed to another process
from torch import Tensor

from sf.memory import Field, SharedArrays


@dataclass(frozen=True)
class PolicyMemorySpec:
    """Sizes of the memory, and its part in shared RAM; an argument of learner and policy workers."""

    device: str
    shapes: dict[str, tuple[int, ...]]
    host: SharedArrays

    @classmethod
    def allocate(
        cls, device: str, num_weights: int, state_size: int, num_actors: int, num_slots: int
    ) -> PolicyMemorySpec:
        shapes: dict[str, tuple[int, ...]] = {
            "weights": (2, num_weights),
            "actor_state": (2, num_actors, state_size),
            "slot_state": (num_slots, state_size),
        }
        fields = [Field("version", (2,), np.int64), Field("latest", (1,), np.int64)]
        if device == "cpu":
            fields += [Field(name, shape, np.float32) for name, shape in shapes.items()]
        return cls(device, shapes, SharedArrays(fields))


class PolicyMemory:
    """The mapped memory.

    weights: two copies [2, W] float32 of all parameters and buffers, in the order of `sf.model`: the learner writes the
        one that is not the latest, then flips, so readers seldom wait and never see half an update.
    actor_state: [2, num_actors, S] float32, the running recurrent state of each actor. Request k of an actor reads copy
        (k - 1) % 2 and writes copy k % 2, so that a request can be answered again where a policy worker died over it.
    slot_state: [num_slots, S] float32, the recurrent state before row 0 of each slot.
    """

    def __init__(self, spec: PolicyMemorySpec, tensors: dict[str, Tensor]) -> None:
        self._version = spec.host["version"]
        self._latest = spec.host["latest"]
        self._tensors = tensors
        self._weights = tensors["weights"]
        self.actor_state = tensors["actor_state"]
        self.slot_state = tensors["slot_state"]

    @classmethod
    def create(cls, spec: PolicyMemorySpec) -> PolicyMemory:
        """In the learner: map the shared RAM, or allocate GPU memory."""
        if spec.device == "cpu":
            return cls(spec, _host_tensors(spec))
        return cls(spec, {name: torch.zeros(shape, device=spec.device) for name, shape in spec.shapes.items()})

    def share(self, policy_worker: Connection) -> None:
        """In the learner, after the first publication: let a policy worker begin."""
        is_cuda = self._tensors["weights"].is_cuda
        policy_worker.send(self._tensors if is_cuda else {})
        if is_cuda:
            _forget_names_of_counters()

    @classmethod
    def attach(cls, spec: PolicyMemorySpec, learner: Connection) -> PolicyMemory:
        """In a policy worker: wait until the learner shares the memory, and map it.

        Raises EOFError where the learner ends before that.
        """
        tensors = learner.recv()
        return cls(spec, tensors or _host_tensors(spec))

    @property
    def latest_version(self) -> int:
        """Version of the latest weights."""
        return int(self._version[self._latest[0]])

    def publish(self, flat: Tensor, version: int) -> None:
        """Make `flat` [W] the latest weights. Versions start at 1 and grow."""
        target = 1 - int(self._latest[0])
        self._version[target] = 0  # a reader that is still at this copy notices
        self._weights[target].copy_(flat)
        if self._weights.is_cuda:
            torch.cuda.current_stream().synchronize()
        self._version[target] = version
        self._latest[0] = target

    def read(self, out: Tensor) -> int:
        """Copy the latest weights into `out` [W]; returns their version."""
        while True:
            source = int(self._latest[0])
            version = int(self._version[source])
            out.copy_(self._weights[source])
            if out.is_cuda:
                torch.cuda.current_stream().synchronize()
            if version > 0 and int(self._version[source]) == version:
                return version  # else the learner has written this copy meanwhile: it may be mixed


class Readers:
    """In the learner: shares the memory with every policy worker that the parent announces, in a thread.

    announcements: where the parent sends a pipe for each policy worker.
    """

    def __init__(self, memory: PolicyMemory, announcements: Connection) -> None:
        self._memory = memory
        self._announcements = announcements
        self._pipes: list[Connection] = []
        threading.Thread(target=self._serve, name="readers", daemon=True).start()

    def wait_until_gone(self) -> None:
        """GPU memory goes with the process that allocated it: wait until no policy worker uses it any more."""
        living = list(self._pipes)
        while living:  # nothing is ever sent this way: it is the ends of the pipes that are waited for
            for pipe in connection.wait(living):
                living.remove(pipe)  # type: ignore[arg-type]  # they are what was passed in

    def _serve(self) -> None:
        with suppress(EOFError, OSError):  # the parent has gone
            while True:
                pipe = Connection(reduction.recv_handle(self._announcements))
                self._pipes = [*(old for old in self._pipes if not old.poll()), pipe]  # without those at their end
                with suppress(OSError):  # that policy worker has died
                    self._memory.share(pipe)


def _forget_names_of_counters() -> None:
    """torch counts the readers of GPU memory in files that it would remove at an orderly end of this process alone.

    They stay where they are mapped; a reader that finds no file when it lets go counts nothing, which is no error.
    """
    for path in Path("/dev/shm").glob(f"torch_{os.getpid()}_*"):
        path.unlink(missing_ok=True)


def _host_tensors(spec: PolicyMemorySpec) -> dict[str, Tensor]:
    return {name: torch.from_numpy(spec.host[name]) for name in spec.shapes}
