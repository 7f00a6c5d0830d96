"""Says in shared memory how probable each level of an environment is now.

An environment with `levels = N` is told the level of each episode (`sf.envs.added.episode_options`). With
`--level_choice plr`, learners write which levels are to be played (`sf.learner.levels`), and rollout workers draw.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sf.system.arrays import Field, SharedArrays


@dataclass(frozen=True)
class Levels:
    """Holds the probabilities of L levels for P policies.

    first: the lowest level. arrays: `probabilities` [P, L] float64, equal at first.
    """

    first: int
    arrays: SharedArrays

    @classmethod
    def allocate(cls, levels: range, num_policies: int) -> Levels:
        arrays = SharedArrays([Field("probabilities", (num_policies, len(levels)), np.float64)], name="sf-levels")
        arrays["probabilities"][:] = 1.0 / len(levels)
        return cls(levels.start, arrays)

    @property
    def num_levels(self) -> int:
        return self.arrays["probabilities"].shape[1]

    def draw(self, policy_id: int, besides: Collection[int], rng: np.random.Generator) -> int:
        """Returns a level for a policy. besides: levels that are not drawn as long as others are possible."""
        probabilities = self.arrays["probabilities"][policy_id]
        others = probabilities.copy()
        others[[level - self.first for level in besides]] = 0.0
        sums = np.cumsum(others if others.any() else probabilities)
        return self.first + int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
