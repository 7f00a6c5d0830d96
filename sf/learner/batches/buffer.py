"""A batch on its way from the host to the device."""

from __future__ import annotations

from sf.learner.batches.batch import Batch
from sf.learner.demonstrations.sampler import DemonstrationSampler
from sf.system import gpu
from sf.system.arrays import SharedArrays


class BatchBuffer:
    """A batch that is filled in host memory and trained on where the network is. On CPU the two are one.

    With a GPU it is filled in page-locked memory, time-major already. One transfer for each field then sends it, while
    the GPU trains on the batch before.

    num_slots: columns for slots, the first ones. Demonstrations fill the others. env_steps: in the slots that it was
    filled from.
    """

    def __init__(
        self,
        rows: SharedArrays,
        num_slots: int,
        state_size: int,
        device: str,
        demonstrations: DemonstrationSampler | None = None,
        num_demonstrated: int = 0,
    ) -> None:
        """Call it in the thread that trains."""
        num_trajectories = num_slots + num_demonstrated
        self.num_slots = num_slots
        self._demonstrations = demonstrations
        self.env_steps = 0
        self._device = device
        self._stream = gpu.CopyStream(device)
        self.host = Batch.empty(rows, num_trajectories, state_size, device, on_host=True)
        self.batch = self.host
        if device != gpu.HOST:
            self.batch = Batch.empty(rows, num_trajectories, state_size, device)
        self._sent = gpu.now(device)
        self._trained = gpu.now(device)

    def send(self) -> None:
        """All slots are in the part on the host. Any thread that has taken the device may call it."""
        if self.num_slots < self.host.num_trajectories:
            assert self._demonstrations is not None
            self._demonstrations.fill(self.host, self.num_slots)
        self.send_as_it_is()

    def send_as_it_is(self) -> None:
        """The part on the host is full."""
        if self.batch is not self.host:
            pairs = zip(self.batch.tensors(), self.host.tensors(), strict=True)
            self._sent = self._stream.copy(pairs, after=self._trained)

    def receive(self) -> Batch:
        """The batch on the device. What the calling thread queues from now on sees its content."""
        self._sent.hold_back()
        return self.batch

    def release(self) -> None:
        """The calling thread has queued all that reads the batch."""
        self._trained = gpu.now(self._device)

    def wait_until_sent(self) -> None:
        """Afterwards the part on the host may be filled again."""
        self._sent.wait()
