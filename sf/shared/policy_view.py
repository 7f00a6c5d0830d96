"""Finds what a policy reads and writes in rows that hold more than its own part, as where kinds of agents differ.

`sf.envs.groups.policy_spec` says which part that is. A policy without such a part has the rows as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from sf.envs import ActionSpec, EnvSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.observations import obs_arrays
from sf.shared.rows import OBS, slot_fields, step_fields
from sf.system.arrays import SharedArrays


class PolicyView:
    """Finds the numbers of a policy in the rows. is_part: whether the rows have others, too."""

    def __init__(self, spec: EnvSpec) -> None:
        """spec: of the policy."""
        self._spec = spec
        self.is_part = spec.stored_in is not None
        own = ActionSpec.of(spec.action_space)
        self._shapes = {field.name: field.shape(own) for field in step_fields(spec)}
        sizes = (
            own.discrete_sizes if spec.stored_in is None else ActionSpec.of(spec.stored_in.action_space).discrete_sizes
        )
        starts = (accumulate(each, initial=0) for each in (own.discrete_sizes, sizes))
        self._heads = [*zip(own.discrete_sizes, *starts, strict=False)]  # choices of a head, and its first one in both

    def pairs(self, name: str, own: Any, rows: Any) -> list[tuple[Any, Any]]:
        """Returns pairs of equal shapes with the same numbers, which together are all of `own`: views of both arrays.

        name: of the field. own: [..., *its shape for the policy], rows: [..., *its shape in the rows]: NumPy arrays or
        tensors.
        """
        if not self.is_part:
            return [(own, rows)]
        shape = self._shapes[name]
        if name != OBS + ACTION_MASK:
            return [(own, rows[(..., *map(slice, shape))])]
        flat = own.reshape(*own.shape[: own.ndim - len(shape)], -1)
        return [(flat[..., a : a + size], rows[..., b : b + size]) for size, a, b in self._heads]

    def observations(self, rows: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns a copy of what the policy sees, {key: [M, *shape]}. rows: {key: [M, *shape in the rows]}."""
        obs = obs_arrays(self._spec.obs_space, len(next(iter(rows.values()))))
        for key, own in obs.items():
            for target, source in self.pairs(OBS + key, own, rows[key]):
                target[...] = source
        return obs

    def layout(self, rows: SharedArrays) -> SharedArrays:
        """Returns arrays of one slot, laid out as the policy's part of the slots. rows: of all slots."""
        return SharedArrays(slot_fields(self._spec, 1, rows["reward"].shape[1])) if self.is_part else rows


def widened(own: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns what a policy answers, [N, ...], with zeros behind it where rows have more: [N, *shape]."""
    if own.shape[1:] == shape:
        return own
    return np.pad(own, [(0, 0), *((0, most - size) for most, size in zip(shape, own.shape[1:], strict=True))])
