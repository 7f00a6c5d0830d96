"""Which runs there are to make, and in which order.

The trainers take turns for each seed of a task, so that the drift of a shared machine hits all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from learning.options import Options
from learning.results import FAILED, Key, Record, key_of
from learning.tasks import Task
from learning.trainers.trainer import Order, Trainer


@dataclass(frozen=True)
class Turn:
    """One run of one trainer."""

    trainer: Trainer
    order: Order

    def described(self) -> Record:
        """The part of its record that is known before it."""
        task = self.order.task
        return {
            "trainer": self.trainer.name,
            "title": self.trainer.title,
            "commit": self.trainer.commit,
            "task": task.name,
            "frames": self.order.frames,
            "seed": self.order.seed,
            "settings": {**self.trainer.settings(self.order), **task.environment},
            "at_least": task.at_least,
        }

    @property
    def key(self) -> Key:
        return key_of(self.described())

    def __str__(self) -> str:
        order = self.order
        return f"{order.task.name}, {order.frames:,} frames, seed {order.seed}, {self.trainer.title}"


def all_turns(
    options: Options, tasks: Sequence[Task], trainers: Sequence[Trainer], say: Callable[[str], None]
) -> list[Turn]:
    """say: is told which trainers are left out of which tasks."""
    turns = []
    for task in tasks:
        refusals = {trainer.name: trainer.refusal(task) for trainer in trainers}
        for trainer in trainers:
            if why := refusals[trainer.name]:
                say(f"{task.name}: without {trainer.title} ({why})")
        for seed in options.seeds[: task.max_seeds]:
            order = Order(task, options.frames or task.frames, seed, options.episodes, options.device)
            turns += [Turn(trainer, order) for trainer in trainers if not refusals[trainer.name]]
    return turns


def missing(turns: Sequence[Turn], latest: dict[Key, Record], retry: bool) -> list[Turn]:
    """Those without a result. retry: failures are none."""
    done: Collection[Any] = {key for key, record in latest.items() if not (retry and record["state"] == FAILED)}
    return [turn for turn in turns if turn.key not in done]
