"""What the comparison of learning knows of a trainer, and what one run of it comes to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from learning.tasks import ENVIRONMENTS, Task
from peers.trainer import ReturnReport
from process_session import Ran, run_bounded

EVALUATION_SEED = 1_000_000
"""Added to the seed of a run for the environments that it is evaluated in, so that training has seen none of them."""

EPISODES_OF_A_MEAN = 100  # of the latest in training
LOOK_EVERY_S = 1  # at the returns in training
MOST_S = 48 * 3600.0  # that a program may take
STALL_S = 600.0  # without progress, after which it is stopped


class RunError(Exception):
    """A run failed. The message is the last line of its log."""


@dataclass(frozen=True)
class Order:
    """A run to make."""

    task: Task
    frames: int
    seed: int
    episodes: int  # of each evaluation
    device: Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to. Seconds are wall time since its process was launched, start-up included."""

    trained_frames: int
    """A few more than were asked for: trainers count in batches."""

    seconds: float
    """Of the training."""

    left_behind: int
    """Processes that the trainer did not end."""

    training: float | None
    """Mean return of the last 100 episodes of training; None if there were fewer."""

    stochastic: float | None
    """Mean return in environments of its own, with sampled actions."""

    deterministic: float | None
    """The same, with the most probable actions."""

    frames_to_score: int | None
    """Until the mean return of the last 100 episodes of training was the score to reach; None if it never was."""

    seconds_to_score: float | None

    @classmethod
    def of(
        cls, order: Order, frames: int, ran: Ran, returns: Sequence[ReturnReport], scores: Mapping[str, float | None]
    ) -> Outcome:
        """returns: in training, in the order of time. scores: stochastic and deterministic."""
        reached = first_at_least(returns, order.task.at_least)
        return cls(
            trained_frames=frames,
            seconds=ran.stopped - ran.started,
            left_behind=ran.left_behind,
            training=returns[-1].mean_return if returns else None,
            stochastic=scores["stochastic"],
            deterministic=scores["deterministic"],
            frames_to_score=reached and reached.frames,
            seconds_to_score=reached and reached.at - ran.started,
        )


class Trainer(Protocol):
    """One of those that are compared."""

    @property
    def name(self) -> str:
        """In the file of results; with the commit, where there are several."""

    @property
    def title(self) -> str: ...

    @property
    def commit(self) -> str | None: ...

    def refusal(self, task: Task) -> str | None:
        """Why it cannot train on a task; None if it can."""

    def prepare(self, task: Task) -> None:
        """Installs what is missing. Raises ValueError where that fails."""

    def settings(self, order: Order) -> dict[str, Any]:
        """What decides on the result, beside task, frames and seed."""

    def versions(self) -> dict[str, str]: ...

    def run(self, order: Order, folder: Path) -> Outcome:
        """Trains and evaluates, and writes all to an empty folder. Raises RunError."""


def run_to_end(
    command: Sequence[str],
    log_file: Path,
    tree: Path | None = None,
    progress: Callable[[], int] | None = None,
    good: Collection[int] = (0,),
    variables: Mapping[str, str] | None = None,
) -> Ran:
    """tree: what Python looks for modules in first. progress: a count that rises as long as the program works. good:
    statuses of a program that has done its work. variables: of its environment, beside those of this process.

    Raises RunError where a program fails, takes longer than it may, or makes no progress for STALL_S.
    """
    # Without the paths of this process: a peer with other versions of its packages fails, or hangs.
    path = "" if tree is None else os.pathsep.join(map(str, (tree, ENVIRONMENTS)))
    stall = None if progress is None else Stall(progress)
    ran = run_bounded(list(command), log_file, MOST_S, stall, {"PYTHONPATH": path, **(variables or {})})
    if ran.status is None and ran.stopped - ran.started < MOST_S:
        raise RunError(f"it made no progress for {STALL_S / 60:g} minutes ({log_file.name})")
    if ran.status is None:
        raise RunError(f"it did not end within {MOST_S / 3600:g} hours")
    if ran.status not in good:
        raise RunError(f"status {ran.status}: {last_line(log_file)} ({log_file.name})")
    return ran


def last_line(log_file: Path) -> str:
    lines = log_file.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")


class Stall:
    """Whether a count has stood still for STALL_S, called now and then."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._last, self._since = -1, time.monotonic()

    def __call__(self) -> bool:
        now, count = time.monotonic(), self._count()
        if count != self._last:
            self._last, self._since = count, now
        return now - self._since > STALL_S


def require_frames(frames: int, order: Order) -> None:
    if frames < order.frames:
        raise RunError(f"it ended after {frames:,} of {order.frames:,} frames")


def first_at_least(returns: Sequence[ReturnReport], score: float | None) -> ReturnReport | None:
    """returns: in the order of time."""
    return None if score is None else next((each for each in returns if each.mean_return >= score), None)
