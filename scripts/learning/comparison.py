"""The results of all seeds of each task and trainer, and of all tasks together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, multimode
from typing import TypeVar

import numpy as np
from learning.aggregates import Estimate, estimate
from learning.results import FINISHED, OWN, Record, key_of
from learning.tasks import Task

T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """A trainer on a task."""

    trainer: str
    title: str
    scores: tuple[float, ...]  # of each seed: with sampled actions, or in training where there is no evaluation
    commits: tuple[str, ...]  # of its runs, each once; the peers have none
    is_of_training: bool
    num_failed: int
    stochastic: Estimate | None  # None without a score
    deterministic: Estimate | None
    num_to_score: int  # seeds whose returns in training came to the score; the next two are medians over them
    frames_to_score: float | None
    seconds_to_score: float | None
    has_reached: bool | None  # whether the interquartile mean is at least the score; None where the task has none


@dataclass(frozen=True)
class Row:
    """A task."""

    task: str
    frames: int
    at_least: float | None
    trainers: tuple[Cell, ...]


@dataclass(frozen=True)
class Overall:
    """Trainers on all tasks that they have in common, by normalised scores: 0 is random, 1 is good."""

    tasks: tuple[str, ...]
    num_seeds: int
    normalised: Mapping[str, Estimate]  # by the title of the trainer


@dataclass(frozen=True)
class Comparison:
    """All that a report shows. report.json has these fields."""

    rows: tuple[Row, ...]
    overall: tuple[Overall, ...]
    num_other_settings: int  # results left out, since a later one of their trainer and task has other settings


def compare(records: Iterable[Record], tasks: Mapping[str, Task]) -> Comparison:
    """records: the latest of each run. tasks: those of the table, by name."""
    groups: dict[tuple[str, int], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    num_other_settings = 0
    for record in records:
        same = groups[record["task"], record["frames"]][record["trainer"]]
        others = [each for each in same if key_of(each)[-1] != key_of(record)[-1]]
        num_other_settings += len(others)
        same[:] = [*(each for each in same if each not in others), record]
    order = [*tasks, *(name for name, _ in groups if name not in tasks)]
    rows = tuple(
        _row(name, frames, by_trainer, tasks.get(name))
        for (name, frames), by_trainer in sorted(groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    )
    return Comparison(rows, tuple(_overall(rows, tasks)), num_other_settings)


def _row(name: str, frames: int, by_trainer: Mapping[str, Sequence[Record]], task: Task | None) -> Row:
    at_least = task.at_least if task else next(iter(by_trainer.values()))[-1].get("at_least")
    cells = (_cell(records, at_least) for records in by_trainer.values())
    return Row(name, frames, at_least, tuple(cells))


def _cell(records: Sequence[Record], at_least: float | None) -> Cell:
    finished = sorted((each for each in records if each["state"] == FINISHED), key=lambda each: each["seed"])
    is_of_training = bool(finished) and all(each["stochastic"] is None for each in finished)
    scores = _there(each["training" if is_of_training else "stochastic"] for each in finished)
    deterministic = _there(each["deterministic"] for each in finished)
    stochastic = _estimate(scores)
    reached = [each for each in finished if each["at_least"] == at_least and each["frames_to_score"] is not None]
    return Cell(
        trainer=records[-1]["trainer"],
        title=records[-1]["title"],
        scores=tuple(scores),
        commits=tuple(dict.fromkeys(_there(each.get("commit") for each in finished))),
        is_of_training=is_of_training,
        num_failed=len(records) - len(finished),
        stochastic=stochastic,
        deterministic=_estimate(deterministic),
        num_to_score=len(reached),
        frames_to_score=median(each["frames_to_score"] for each in reached) if reached else None,
        seconds_to_score=median(each["seconds_to_score"] for each in reached) if reached else None,
        has_reached=None if at_least is None or stochastic is None else stochastic.iqm >= at_least,
    )


def _there(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]


def _estimate(scores: Sequence[float]) -> Estimate | None:
    return estimate(np.array(scores, dtype=np.float64)[:, None]) if scores else None  # [S, 1]


def _overall(rows: Sequence[Row], tasks: Mapping[str, Task]) -> list[Overall]:
    """Of all trainers, and of this project with each peer, since not every peer has every task."""
    names = list(dict.fromkeys(cell.trainer for row in rows for cell in row.trainers))
    own = [name for name in names if name.startswith(OWN)]
    groups = [(*names,), *((*own, name) for name in names if name not in own), (*own,)]
    found: dict[tuple[str, ...], Overall] = {}
    for group in dict.fromkeys(group for group in groups if group):
        shared = _shared(rows, group, tasks)
        # Seeds are drawn within each task, so all tasks need as many: the number that most of them have, or of several
        # such numbers the least. Tasks with more seeds give their first ones, those with fewer are left out.
        seeds = {name: min(map(len, of.values())) for name, of in shared.items()}
        num_seeds = min(multimode(seeds.values()), default=0)
        full = {name: of for name, of in shared.items() if seeds[name] >= num_seeds}
        if len(full) > 1:
            estimates = {
                title: estimate(np.array([of[title][:num_seeds] for of in full.values()]).T)  # [S, K]
                for title in next(iter(full.values()))
            }
            found.setdefault(tuple(full), Overall(tuple(full), num_seeds, estimates))  # the largest group comes first
    return list(found.values())


def _shared(
    rows: Sequence[Row], group: Sequence[str], tasks: Mapping[str, Task]
) -> dict[str, dict[str, tuple[float, ...]]]:
    """Of each task that all of a group have scores of: their normalised scores, by title."""
    shared = {}
    for row in rows:
        cells = [cell for cell in row.trainers if cell.trainer in group and cell.scores]
        task = tasks.get(row.task)
        if len(cells) < len(group) or task is None or task.normalised(0.0) is None:
            continue
        shared[f"{row.task} ({row.frames:,})"] = {
            cell.title: tuple(_there(map(task.normalised, cell.scores))) for cell in cells
        }
    return shared
