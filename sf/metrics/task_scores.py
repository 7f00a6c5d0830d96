"""How good one policy is at several tasks: the returns of each, and one score over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sf.envs.tasks.references import RETURN, SCORE

CAP = 1.0  # the score of a reference: no task can make up for another one by a score above it

SCORE_MEAN, SCORE_MEDIAN = "task_score_mean", "task_score_median"

Stats = Mapping[str, float]  # of an episode


def returns_of_tasks(episodes: Iterable[Stats]) -> dict[str, float]:
    """Returns the mean return of each task that has an episode, by its name."""
    return _means(episodes, RETURN)


def task_scores(episodes: Iterable[Stats]) -> dict[str, float]:
    """Returns the mean and the median over tasks of the normalised mean return of each, at most `CAP`.

    Each task counts alike, however many episodes it has. A task without a reference score is left out; empty if all
    are.
    """
    capped = [min(CAP, score) for score in _means(episodes, SCORE).values()]
    return {SCORE_MEAN: float(np.mean(capped)), SCORE_MEDIAN: float(np.median(capped))} if capped else {}


def capped_scores(episodes: Iterable[Stats]) -> list[float]:
    """Returns the normalised return of each episode of a task with a reference score, at most `CAP`."""
    return [min(CAP, value) for stats in episodes for name, value in stats.items() if name.startswith(SCORE)]


def _means(episodes: Iterable[Stats], prefix: str) -> dict[str, float]:
    of_tasks: dict[str, list[float]] = {}
    for stats in episodes:
        for name, value in stats.items():
            if name.startswith(prefix):
                of_tasks.setdefault(name.removeprefix(prefix), []).append(value)
    return {task: float(np.mean(values)) for task, values in of_tasks.items()}
