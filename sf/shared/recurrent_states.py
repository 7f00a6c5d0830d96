"""The recurrent state of every actor of one policy, and that with which each slot begins.

They are in shared RAM, so they outlive every process. Policy workers write them; the learner reads those of the slots.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sf.system.arrays import Field, SharedArrays


class RecurrentStates:
    """size: S numbers of an actor; 0 for a network without memory."""

    def __init__(self, size: int, num_actors: int, num_slots: int) -> None:
        self.size = size
        self._arrays = SharedArrays(
            [Field("of_actors", (2, num_actors, size), np.float32), Field("of_slots", (num_slots, size), np.float32)]
        )

    @property
    def of_actors(self) -> Tensor:
        """[2, num_actors, S] float32, the running state of each actor. Request k of an actor reads copy (k - 1) % 2 and
        writes copy k % 2, so that a request can be answered again where a policy worker died over it."""
        return torch.from_numpy(self._arrays["of_actors"])

    @property
    def of_slots(self) -> Tensor:
        """[num_slots, S] float32, the state before row 0 of each slot."""
        return torch.from_numpy(self._arrays["of_slots"])
