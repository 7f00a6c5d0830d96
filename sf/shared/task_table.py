"""Says which task each group of environments is to have: written by the parent, read by the rollout workers.

A group that has another task takes up the new one between two rollouts (`sf.rollout.group`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sf.system.arrays import Field, SharedArrays


@dataclass(frozen=True)
class TaskTable:
    """names: of the tasks, by their numbers."""

    names: Sequence[str]
    arrays: SharedArrays

    @classmethod
    def allocate(cls, names: Sequence[str], of_groups: np.ndarray) -> TaskTable:
        """of_groups: [G] the number of the task of each group."""
        arrays = SharedArrays([Field("of_groups", of_groups.shape, np.int32)])
        arrays["of_groups"][:] = of_groups
        return cls(names, arrays)

    def of_group(self, group_idx: int) -> str:
        """Returns the name of the task that a group is to have."""
        return self.names[int(self.arrays["of_groups"][group_idx])]
