"""Says in shared memory how much teachers are listened to: learners write it, and policy workers read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sf.system.arrays import Field, SharedArrays

PARAMS = "teacher_params"
"""The field of a step that has what a teacher says, as parameters of a distribution over actions."""


@dataclass(frozen=True)
class Teaching:
    """Holds a number for each of P policies.

    arrays: `left` [P] float64, the present weight of the teacher's loss as a share of the first one; 0: the teacher has
    nothing more to say. acts: the share of the trajectories in which the teacher acts at first. falls: with `left`.
    """

    arrays: SharedArrays
    acts: float
    falls: bool

    @classmethod
    def allocate(cls, num_policies: int, acts: float, falls: bool) -> Teaching:
        arrays = SharedArrays([Field("left", (num_policies,), np.float64)], name="sf-teaching")
        arrays["left"][:] = 1.0
        return cls(arrays, acts, falls)

    def write(self, policy_id: int, left: float) -> None:
        self.arrays["left"][policy_id] = left

    def left(self, policy_id: int) -> float:
        return float(self.arrays["left"][policy_id])

    def acting_share(self, policy_id: int) -> float:
        """Returns the share of new trajectories in which the teacher acts now."""
        left = self.left(policy_id)
        return self.acts * left if self.falls else self.acts * (left > 0)
