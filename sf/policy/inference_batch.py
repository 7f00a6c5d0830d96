"""Inference batches: staged on the host, computed on the device, and brought back to the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from sf.envs import ActionSpec, EnvSpec
from sf.model.acting import AnswerLayout, AnyActing
from sf.model.distributions import ActionDistribution
from sf.policy.recorded_batches import RecordedBatches, size_for
from sf.policy.transfers import AnswersToHost, ObsGather, States
from sf.shared.recurrent_states import RecurrentStates
from sf.system import gpu
from sf.system.arrays import SharedArrays


class InferenceBatch:
    """Computes the decisions of one batch of actors after the other, in memory that is allocated once."""

    def __init__(
        self,
        acting: AnyActing,
        spec: EnvSpec,
        rows: SharedArrays,
        states: RecurrentStates,
        max_actors: int,
        device: str,
    ) -> None:
        """acting: for inputs on the device. spec: with the observations that the network reads. rows: of the slots.
        max_actors: of a batch."""
        self.generator = torch.Generator(gpu.torch_device(device))  # draws the actions
        self._acting = acting
        self._action_spec = action_spec = ActionSpec.of(spec.action_space)
        self._device = device
        self._rows_per_slot = rows["first"].shape[1]
        max_rows = size_for(max_actors)
        self._obs = ObsGather(rows, spec, max_rows, device)
        self._states = States(states, max_rows, device)
        self._answers = AnswersToHost(AnswerLayout(action_spec, spec.optional_fields), max_rows, device)
        self._queue: Callable[[int], None] = self._queue_each

    def record(self, dtype: torch.dtype) -> None:
        """On a GPU: queue batches by recordings from here on. dtype: of the network's trunk."""

        def results(num: int) -> tuple[Tensor, Tensor]:
            return self._answers.arrived(num), self._states.arrived(num)

        self._queue = RecordedBatches(self._queue_each, results, self.generator, self._action_spec, dtype, self._device)

    def decide(
        self, slots: np.ndarray, rows: np.ndarray, actors: np.ndarray, numbers: np.ndarray, first: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Decide for N actors, whose observations are in `rows` [N] of `slots` [N].

        Returns the fields that the network computes [N, ...], by name; the next batch overwrites them. actors, numbers:
        [N] which actor asks, with which request, for its recurrent state. first: [N] bool, whether an episode begins.
        """
        self._acting.look()
        with torch.inference_mode():
            self._obs.stage(slots.astype(np.int64) * self._rows_per_slot + rows)
            self._states.stage(actors, numbers, first)
            self._states.keep(slots, rows)
            self._queue(len(slots))
            gpu.now(self._device).wait()
            self._states.write(actors, numbers)
        return self._answers.unpacked(len(slots))

    def close(self) -> None:
        self._acting.close()

    def _queue_each(self, num: int) -> None:
        """The device's part of a batch of `num` rows: from what is staged on the host to what comes back there."""
        device = gpu.torch_device(self._device)
        noise = ActionDistribution.noise(self._action_spec, (num,), device, self.generator)
        packed, state = self._acting(self._obs.there(num), *self._states.there(num), *noise)
        self._states.send(state)
        self._answers.send(packed)
