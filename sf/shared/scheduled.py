"""The values that `--anneal` changes, in shared memory, and the episodes that decide about some of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sf.config.schedules import ENV, ByMetric, Evolved, Schedule, Stage
from sf.system.arrays import Field, SharedArrays


@dataclass(frozen=True)
class Scheduled:
    """The table of a run with K schedules, P policies and N actors.

    arrays: `values` [P, K] float64, which the learner of each policy writes between two iterations, and the parent if
    the value evolves; NaN where it is drawn for each episode. Of the episodes that began at the present value and
    reported the metric of a schedule `ByMetric`: `sums` of it, and `counts`, both [P, K, N], which rollout workers add
    to.
    """

    schedules: tuple[Schedule, ...]
    arrays: SharedArrays

    @classmethod
    def allocate(cls, schedules: tuple[Schedule, ...], num_policies: int, num_actors: int) -> Scheduled:
        of_episodes = num_policies, len(schedules), num_actors
        fields = [
            Field("values", of_episodes[:2], np.float64),
            Field("sums", of_episodes, np.float64),
            Field("counts", of_episodes, np.int64),
        ]
        arrays = SharedArrays(fields, name="sf-scheduled")
        arrays["values"][:] = [schedule.start for schedule in schedules]
        return cls(schedules, arrays)

    def write(self, policy_id: int, stage: Stage) -> None:
        """Write the values of a policy, but for those that evolve."""
        for column, schedule in enumerate(self.schedules):
            if not isinstance(schedule, Evolved):
                self.arrays["values"][policy_id, column] = schedule.value(stage)

    def evolve(self, policy_id: int, values: Mapping[str, float]) -> None:
        """Write those that evolve, by name."""
        for name, value in values.items():
            self.arrays["values"][policy_id, self.columns[name]] = value

    def values_of(self, policy_id: int) -> dict[str, float]:
        """Returns the present values of a policy by name, without those that are drawn."""
        row = self.arrays["values"][policy_id].tolist()
        return {each.name: value for each, value in zip(self.schedules, row, strict=True) if not math.isnan(value)}

    def has_final_options(self, policy_id: int) -> bool:
        """Returns whether episodes of a policy begin with the last options of the environment now."""
        values = self.values_of(policy_id)
        options = [each for each in self.schedules if each.name.startswith(ENV) and each.name in values]
        options = [each for each in options if not isinstance(each, Evolved)]
        return all(values[each.name] == each.end for each in options)

    @property
    def columns(self) -> dict[str, int]:
        """Returns the column of each schedule by name."""
        return {each.name: column for column, each in enumerate(self.schedules)}

    @property
    def by_metric(self) -> dict[int, ByMetric]:
        """Returns the schedules that episodes decide about, by column."""
        return {column: each for column, each in enumerate(self.schedules) if isinstance(each, ByMetric)}
