"""The leaves of searches: positions of which policy workers say how good they are and what to play there.

Each group of environments has L places for leaves. They are laid out as slots of one step, so a policy worker answers a
request about leaves as it answers one about trajectories; `logits` and `value` are what the search asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sf.envs import EnvSpec
from sf.shared.rows import LOGITS, OBS, slot_fields
from sf.system.arrays import SharedArrays


@dataclass(frozen=True)
class Leaves:
    """arrays: as those of slots, [G x L, ...]. per_group: L."""

    arrays: SharedArrays
    per_group: int

    @classmethod
    def allocate(cls, spec: EnvSpec, num_groups: int, per_group: int) -> Leaves:
        """spec: of the policy."""
        arrays = SharedArrays(slot_fields(spec_of_leaves(spec), num_groups * per_group, rollout=1))
        arrays["actor"][:] = np.arange(num_groups * per_group)
        arrays["first"][:] = True
        return cls(arrays, per_group)

    def of_group(self, group_idx: int) -> LeavesOfGroup:
        first = group_idx * self.per_group
        return LeavesOfGroup(self.arrays, np.arange(first, first + self.per_group, dtype=np.int32))


class LeavesOfGroup:
    """The places of one group, for its rollout worker. idxs: [L] int32, of them."""

    def __init__(self, arrays: SharedArrays, idxs: np.ndarray) -> None:
        own = slice(int(idxs[0]), int(idxs[-1]) + 1)
        self.idxs = idxs
        self.obs = {key: rows[own, 0] for key, rows in arrays.named(OBS).items()}  # {key: [L, ...]}
        self.logits, self.value = arrays[LOGITS][own, 0], arrays["value"][own, 0]
        self.version = arrays["policy_version"][own, 0]


def spec_of_leaves(spec: EnvSpec) -> EnvSpec:
    """Returns the spec of a policy as its policy workers have it, which answer requests about leaves."""
    return replace(spec, optional_fields=(LOGITS,))
