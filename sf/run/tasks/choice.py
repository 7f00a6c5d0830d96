"""Moves groups of environments to the tasks that a policy learns most at, for `--task_choice progress`.

The measure of learning is how much the mean return of a task changes (Matiisen et al. 2020, "Teacher-student curriculum
learning"), also where it falls, since what is forgotten has to be learned again. It is the difference between the means
of its episodes in two periods, in units of their standard deviation, less what chance alone would give. A period ends
when each task has had enough episodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sf.envs.tasks.references import RETURN
from sf.run.tasks.groups import moved, num_groups_of_tasks
from sf.shared.task_table import TaskTable
from sf.system.messages import say

EPISODES = 50  # of each task in a period, at least
BY_WEIGHT = 0.5  # the share of the groups that always follows the weights
_CHANCE = 2.0  # standard errors of a difference that count as none


class TaskChoice:
    """Decides which tasks the groups of a run have. weights: of the tasks in the file, by name."""

    def __init__(self, table: TaskTable, weights: Mapping[str, float]) -> None:
        self._table = table
        self._weights = np.array(list(weights.values())) / sum(weights.values())
        self._names = list(weights)
        self._before: list[list[float]] | None = None  # [n] the returns of each task in the period before
        self._returns: list[list[float]] = [[] for _ in weights]

    def add(self, episodes: Iterable[Mapping[str, float]]) -> None:
        """episodes: the statistics of each, with the return at its task."""
        for stats in episodes:
            for returns, name in zip(self._returns, self._names, strict=True):
                if RETURN + name in stats:
                    returns.append(stats[RETURN + name])

    def choose_if_due(self) -> None:
        """Share the groups out anew at the end of a period."""
        if min(map(len, self._returns)) < EPISODES:
            return
        before, self._before = self._before, self._returns
        self._returns = [[] for _ in self._names]
        if before is None:
            return
        progress = np.array([change(*each) for each in zip(before, self._before, strict=True)])
        shares = self._weights
        if progress.any():
            by_progress = self._weights * progress
            shares = BY_WEIGHT * shares + (1 - BY_WEIGHT) * by_progress / by_progress.sum()
        of_groups = self._table.arrays["of_groups"]
        numbers = num_groups_of_tasks(shares.tolist(), len(of_groups))
        new = moved(of_groups, numbers)
        if (new != of_groups).any():
            of_groups[:] = new
            shown = zip(self._names, numbers, progress, strict=True)
            say("groups by task: " + ", ".join(f"{name} {number} ({each:.2f})" for name, number, each in shown))


def change(before: Sequence[float], now: Sequence[float]) -> float:
    """Returns how far two samples of returns differ in their means, in their pooled standard deviations, less `_CHANCE`
    standard errors; 0 if they differ by less."""
    stddev = float(np.sqrt((np.var(before) + np.var(now)) / 2))
    difference = abs(float(np.mean(now)) - float(np.mean(before)))
    if stddev == 0.0:
        return float(difference > 0)
    return max(0.0, difference / stddev - _CHANCE * float(np.sqrt(1 / len(before) + 1 / len(now))))
