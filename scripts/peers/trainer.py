"""Describes a trainer and the result of a run of it, for the comparisons of speed and of learning."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from typing import Any, ClassVar, Literal, NamedTuple

from learning.tasks import ENVIRONMENTS, Task
from peers import virtual_envs
from peers.options import kind_of
from process_session import Ran, run_bounded

MIN_REPORTS = 3  # for a rate
EPISODES = 100  # of the latest in training, of a mean
EVALUATION_SEED = 1_000_000
"""Added to the seed of a run for the environments that it is evaluated in, so that training has seen none of them."""

LOOK_EVERY_S = 1  # at the returns in training
MOST_S = 48 * 3600.0  # that a program may take
STALL_S = 600.0  # without progress, after which it is stopped


class RunError(Exception):
    """A run failed. The message is the last line of its log."""


class Report(NamedTuple):
    """Holds how many frames a trainer had trained on at a time."""

    at: float  # seconds of the epoch
    frames: int  # trained on so far


class ReturnReport(NamedTuple):
    """Holds the mean return that a trainer reported at a time."""

    at: float
    frames: int
    mean_return: float  # of the latest 100 episodes


@dataclass(frozen=True)
class Result:
    """One run of bench_peers. Seconds are wall time since its process was launched, start-up included."""

    steady_frames_per_second: float | None  # None if it trained too little, which is an error without --to_return
    env_frames: int
    seconds: float  # in which env_frames were trained on
    left_behind: int  # processes that the trainer did not end
    mean_return: float | None = None  # the last one reported, with --to_return
    seconds_to_return: float | None = None  # None if it did not get there
    frames_to_return: int | None = None

    @property
    def whole_run_frames_per_second(self) -> float:
        return self.env_frames / self.seconds


@dataclass(frozen=True)
class Order:
    """A run that bench_learning is to make."""

    task: Task
    frames: int
    seed: int
    episodes: int  # of each evaluation
    device: Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Outcome:
    """One run of bench_learning. Seconds are wall time since its process was launched, start-up included."""

    trained_frames: int  # a few more than were asked for: trainers count in batches
    seconds: float  # of the training
    left_behind: int  # processes that the trainer did not end
    training: float | None  # mean return of the last 100 episodes of training; None if there were fewer
    stochastic: float | None  # mean return in environments of its own, with sampled actions
    deterministic: float | None  # the same, with the most probable actions
    frames_to_score: int | None  # until the mean of 100 episodes of training was the score; None if it never was
    seconds_to_score: float | None

    @classmethod
    def of(
        cls, order: Order, frames: int, ran: Ran, returns: Sequence[ReturnReport], scores: Mapping[str, float | None]
    ) -> Outcome:
        """returns: in training, in the order of time. scores: stochastic and deterministic.

        Raises RunError where the run was shorter than ordered.
        """
        if frames < order.frames:
            raise RunError(f"it ended after {frames:,} of {order.frames:,} frames")
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


class Peer:
    """Another project's trainer, in a virtual environment of its own.

    Each has refusal(env), which returns why it cannot train on an environment, or None; install(kind), which raises
    ValueError where it fails; and measure_speed(options, train_dir, experiment), one run of bench_peers, which raises
    SystemExit where it fails. Those of bench_learning have settings(order), what decides on the result beside task,
    frames and seed; and learn(order, folder), which trains and evaluates in an empty folder, and raises RunError.
    """

    package: ClassVar[str]
    name: ClassVar[str]
    title: ClassVar[str]
    commit: ClassVar[str | None] = None
    shown_settings: ClassVar[Sequence[str]] = ()
    """Tables show these settings, which decide how much work a frame is, or all if empty. The JSON file has all."""

    def __init__(self, peers_dir: Path) -> None:
        self.folder = peers_dir.absolute() / self.package.replace("==", "-")
        self.python = self.folder / "bin" / "python"

    def settings_in(self, folder: Path) -> dict[str, Any]:
        """All settings of a run of bench_peers, from its folder."""
        return json.loads((folder / "settings.json").read_text())

    def versions(self) -> dict[str, str]:
        return virtual_envs.versions(self.python)

    def refusal_of(self, task: Task) -> str | None:
        """Returns why it cannot train on a task, or None if it can."""
        return None if self.name in task.peers else f"{self.title} is not run on {task.name}"

    def prepare(self, task: Task) -> None:
        """Installs what is missing. Raises ValueError where that fails."""
        self.install(kind_of(task.env))


def reports_in_json(log: str, frameskip: int) -> tuple[list[Report], list[ReturnReport]]:
    """What a program of ours says of a trainer's progress, and of its returns, in lines of JSON between others."""
    reports, returns = [], []
    for said in (json.loads(line) for line in log.splitlines() if line.startswith('{"at"')):
        frames = frameskip * said["steps"]
        if said["are_trained_on"]:
            reports.append(Report(said["at"], frames))
        if said["mean_return"] is not None:
            returns.append(ReturnReport(said["at"], frames, said["mean_return"]))
    return reports, returns


def first_at_least(returns: Sequence[ReturnReport], score: float | None) -> ReturnReport | None:
    """returns: in the order of time."""
    return None if score is None else next((each for each in returns if each.mean_return >= score), None)


def result_of(
    title: str,
    log: str,
    reports: Sequence[Report],
    returns: Sequence[ReturnReport],
    to_return: float | None,
    ran: Ran,
) -> Result:
    """What a run comes to by what it reported before it was stopped.

    The rate is by least squares, so that a batch just before or after a report does not tilt it. returns: in the order
    of time. Raises SystemExit where it failed, or trained too little for a figure.
    """
    if ran.status:
        raise SystemExit(f"{title} ended with status {ran.status}. Its log ends:\n{log[-2000:]}")
    reports = [each for each in reports if each.at <= ran.stopped]
    returns = [each for each in returns if each.at <= ran.stopped]
    has_rate = len(reports) >= MIN_REPORTS
    if not has_rate and (to_return is None or not (reports or returns)):
        raise SystemExit(f"{title} trained too little: raise --seconds. Its log ends:\n{log[-2000:]}")
    reached = first_at_least(returns, to_return)
    at, frames = max([*reports, *(Report(each.at, each.frames) for each in returns)])
    return Result(
        linear_regression(*zip(*reports, strict=True)).slope if has_rate else None,
        frames,
        at - ran.started,
        ran.left_behind,
        mean_return=returns[-1].mean_return if returns else None,
        seconds_to_return=reached and reached.at - ran.started,
        frames_to_return=reached and reached.frames,
    )


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
    """Tells whether a count has stood still for STALL_S. It is called now and then."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._last, self._since = -1, time.monotonic()

    def __call__(self) -> bool:
        now, count = time.monotonic(), self._count()
        if count != self._last:
            self._last, self._since = count, now
        return now - self._since > STALL_S
