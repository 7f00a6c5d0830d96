"""The weights that learner and policy workers of one policy share.

On CPU they are in shared RAM. With a GPU they are in its memory, which the learner allocates and the policy workers
map: they never cross the bus.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, reduction
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import Tensor

from sf.system import gpu
from sf.system.arrays import Field, SharedArrays
from sf.system.processes.child import FinalError, end_with_error
from sf.system.processes.reports import Reports

NUM_COPIES = 3  # the latest, the one before, which may still be read, and the next
_TRIES = 3  # a torn read may be repeated; memory that is not the learner's stays wrong


@dataclass(frozen=True)
class SharedWeightsSpec:
    """The sizes, and what is in shared RAM; an argument of learner and policy workers."""

    device: str
    num_weights: int  # W, of all parameters and buffers
    host: SharedArrays

    @classmethod
    def allocate(cls, device: str, num_weights: int) -> SharedWeightsSpec:
        fields = [Field("version", (NUM_COPIES,), np.int64), Field("latest", (1,), np.int64)]
        if device == gpu.HOST:
            fields.append(Field("weights", (NUM_COPIES, num_weights + 1), np.float32))
        return cls(device, num_weights, SharedArrays(fields))


class SharedWeights:
    """The mapped memory.

    weights: three copies [3, W + 1] float32 of all parameters and buffers, in the order of `sf.model`, each followed by
        its version as the bits of an int32. The learner writes them in turn, and names the one that is done. A policy
        worker never sees half an update, and reads again only where the third one after it has begun meanwhile. The
        version that it copies along proves whose weights it has.
    """

    def __init__(self, spec: SharedWeightsSpec, weights: Tensor) -> None:
        self.device = spec.device
        self._version = spec.host["version"]
        self._latest = spec.host["latest"]
        self._weights = weights
        self._stamps = weights.view(torch.int32)[:, -1]  # [3]
        self._unnamed: tuple[int, int, gpu.Event] | None = None  # what is queued: its copy, its version, its end

    @classmethod
    def create(cls, spec: SharedWeightsSpec) -> SharedWeights:
        """In the learner: map the shared RAM, or allocate GPU memory.

        Raises FinalError where GPU memory cannot be shared.
        """
        if spec.device == gpu.HOST:
            return cls(spec, torch.from_numpy(spec.host["weights"]))
        with _final():
            return cls(spec, gpu.shared_zeros((NUM_COPIES, spec.num_weights + 1), spec.device))

    def share(self, policy_worker: Connection) -> None:
        """In the learner, after the first publication: let a policy worker begin.

        Raises OSError where it has died, FinalError where GPU memory cannot be shared.
        """
        if self.device == gpu.HOST:
            policy_worker.send(None)
            return
        with _final():
            gpu.send(self._weights, policy_worker)

    @classmethod
    def attach(cls, spec: SharedWeightsSpec, learner: Connection) -> SharedWeights:
        """In a policy worker: wait until the learner shares the memory, and map it.

        Raises EOFError where the learner ends before that, FinalError where GPU memory cannot be shared.
        """
        if spec.device == gpu.HOST:
            learner.recv()
            return cls(spec, torch.from_numpy(spec.host["weights"]))
        with _final():
            return cls(spec, gpu.receive(learner))

    @property
    def latest_version(self) -> int:
        """Version of the latest weights."""
        return int(self._version[self._latest[0]])

    def publish(self, flat: Tensor, version: int) -> None:
        """Queue `flat` [W] to become the latest weights. Versions start at 1 and grow.

        On a GPU they become the latest at the next `publish` or `flush`: the host queues the next optimiser step
        meanwhile, and never waits for a copy that is still to be made.
        """
        self.flush()
        target = (int(self._latest[0]) + 1) % NUM_COPIES
        self._version[target] = 0  # a reader that is still at this copy notices
        gpu.copy(self._weights[target, :-1], flat, self.device)
        self._stamps[target].fill_(version)
        self._unnamed = target, version, gpu.now(self.device)
        if self.device == gpu.HOST:
            self.flush()

    def flush(self) -> None:
        """Wait until what was published last is written, and name it the latest."""
        if self._unnamed is not None:
            target, version, written = self._unnamed
            written.wait()
            self._version[target] = version
            self._latest[0] = target
            self._unnamed = None

    def read(self, out: Tensor) -> int:
        """Copy the latest weights into `out` [W + 1], whose last number is their version, and return that version.

        Raises FinalError where it reads something else than the learner published.
        """
        stamps: list[int] = []
        while len(stamps) < _TRIES:
            source = int(self._latest[0])
            version = int(self._version[source])
            gpu.copy(out, self._weights[source], self.device).wait()
            if version == 0 or int(self._version[source]) != version:
                continue  # the learner has written this copy meanwhile: it may be mixed
            stamps.append(int(out.view(torch.int32)[-1]))
            if stamps[-1] == version:
                return version
        raise FinalError(
            f"a policy worker read weights of version {stamps[-1]} where the learner had published version {version}: "
            f"the memory of {self.device} that they share is not the same for both. `sf-train --check` tests it; "
            "--device cpu trains without"
        )


@contextmanager
def _final() -> Iterator[None]:
    """What the GPU cannot do, it cannot do in a new process either."""
    try:
        yield
    except gpu.SharingError as error:
        raise FinalError(str(error)) from error


class PolicyWorkers:
    """In the learner: its policy workers. A thread shares the weights with each that the parent announces.

    announcements: the parent sends a pipe for each policy worker here.
    """

    def __init__(self, weights: SharedWeights, announcements: Connection, reports: Reports) -> None:
        weights.flush()
        self._weights = weights
        self._announcements = announcements
        self._reports = reports
        self._pipes: list[Connection] = []
        threading.Thread(target=self._serve, name="policy workers", daemon=True).start()

    def wait_until_gone(self) -> None:
        """GPU memory ends with the process that allocated it, so wait until no policy worker uses it any more."""
        living = [] if self._weights.device == gpu.HOST else list(self._pipes)
        while living:  # nothing is ever sent this way: a pipe becomes readable when its other end is closed
            for pipe in connection.wait(living):
                living.remove(pipe)  # type: ignore[arg-type]  # they are what was passed in

    def _serve(self) -> None:
        try:
            gpu.take(self._weights.device)
            with suppress(EOFError, OSError):  # the parent has gone
                while True:
                    pipe = Connection(reduction.recv_handle(self._announcements))
                    self._pipes = [*(old for old in self._pipes if not old.poll()), pipe]  # without those at their end
                    with suppress(OSError):  # that policy worker has died
                        self._weights.share(pipe)
        except Exception as error:  # without policy workers the learner would wait for samples for ever
            end_with_error(self._reports, error)
