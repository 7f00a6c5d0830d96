"""The runs that there are to make, in their order: makes one after the other, and writes the result of each.

The trainers take turns for each seed of a task, so that the drift of a shared machine hits all alike.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from learning.aggregates import shown
from learning.results import FAILED, FINISHED, Key, Record, Results, key_of
from learning.tasks import Task
from peers.own import Own
from peers.trainer import Order, Outcome, Peer, RunError
from recording import machine

Learner = Own | Peer


@dataclass(frozen=True)
class Turn:
    """One run of one trainer."""

    trainer: Learner
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
    tasks: Sequence[Task],
    trainers: Sequence[Learner],
    seeds: Sequence[int],
    order: Callable[[Task, int], Order],
    say: Callable[[str], None],
) -> list[Turn]:
    """order: of a task and a seed. say: is told which trainers are left out of which tasks."""
    turns = []
    for task in tasks:
        refusals = {trainer.name: trainer.refusal_of(task) for trainer in trainers}
        for trainer in trainers:
            if why := refusals[trainer.name]:
                say(f"{task.name}: without {trainer.title} ({why})")
        for seed in seeds[: task.max_seeds]:
            turns += [Turn(trainer, order(task, seed)) for trainer in trainers if not refusals[trainer.name]]
    return turns


def missing(turns: Sequence[Turn], latest: dict[Key, Record], retry: bool) -> list[Turn]:
    """Those without a result. retry: failures are none."""
    done: Collection[Any] = {key for key, record in latest.items() if not (retry and record["state"] == FAILED)}
    return [turn for turn in turns if turn.key not in done]


def prepared(turns: Sequence[Turn], say: Callable[[str], None]) -> list[Turn]:
    """Those whose trainers have all that they need."""
    pairs = {(turn.order.task.name, turn.trainer.name): turn for turn in turns}
    for pair, turn in list(pairs.items()):
        try:
            turn.trainer.prepare(turn.order.task)
        except ValueError as error:  # noqa: PERF203  it keeps no other from its turns
            del pairs[pair]
            say(f"{turn.order.task.name}: without {turn.trainer.title} ({error})")
    return [turn for turn in turns if (turn.order.task.name, turn.trainer.name) in pairs]


def make(turns: Sequence[Turn], results: Results, runs: Path, say: Callable[[str], None]) -> None:
    """runs: the folder in which each has one of its own. What an earlier, unfinished one left there is removed."""
    for number, turn in enumerate(turns, start=1):
        say(f"{number} of {len(turns)}: {turn}")
        record = _make(turn, runs)
        results.append(record)
        say(f"    {sentence(record)}")


def _make(turn: Turn, runs: Path) -> Record:
    order = turn.order
    name = re.sub(r"[^\w@.=-]+", "_", turn.trainer.name)  # which may have flags with paths
    key = hashlib.sha256(repr(turn.key).encode()).hexdigest()[:8]  # of what the name does not say, such as --episodes
    folder = (runs / name / f"{order.task.name}_{order.frames}_seed_{order.seed}_{key}").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    where = {"machine": machine.describe(order.device), "versions": turn.trainer.versions()}
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    started = time.monotonic()
    try:
        came_to = {"state": FINISHED, **asdict(turn.trainer.learn(order, folder))}
    except RunError as error:
        came_to = {"state": FAILED, "why": str(error)}
    total = {"seconds_with_evaluation": time.monotonic() - started}
    return {**turn.described(), **came_to, **total, "at": at, **where}


def sentence(record: Record) -> str:
    """What a run came to."""
    if record["state"] == FAILED:
        return f"failed: {record['why']}"
    outcome = Outcome(**{name: record[name] for name in Outcome.__dataclass_fields__})
    scores = {
        "sampled": outcome.stochastic,
        "deterministic": outcome.deterministic,
        "in training": outcome.training,
    }
    said = ", ".join(f"{name} {shown(score)}" for name, score in scores.items() if score is not None)
    return f"{said or 'no score'} after {outcome.trained_frames:,} frames in {outcome.seconds:.0f} s"
