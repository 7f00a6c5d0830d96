"""What the comparison knows of a trainer, and what a run of it comes to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from typing import Any, NamedTuple

from peers.options import Kind, Options
from process_session import Ran

MIN_REPORTS = 3  # for a rate


@dataclass(frozen=True)
class Result:
    """One run of one trainer. Seconds are wall time since its process was launched, start-up included."""

    steady_frames_per_second: float | None
    """None if it trained too little for one, which is an error without --to_return."""

    env_frames: int
    seconds: float
    """In which env_frames were trained on."""

    left_behind: int
    """Processes that the trainer did not end."""

    mean_return: float | None = None
    """The last one reported, with --to_return."""

    seconds_to_return: float | None = None
    """None if it did not get there."""

    frames_to_return: int | None = None

    @property
    def whole_run_frames_per_second(self) -> float:
        return self.env_frames / self.seconds


@dataclass(frozen=True)
class Trainer:
    """One of those that are compared."""

    title: str
    refusal: Callable[[str], str | None]
    """Why it cannot train on an environment, by its name here; None if it can."""

    install: Callable[[Kind, Path], Path]
    """Returns the interpreter that has it and what this kind of environment needs, in a folder for all peers.

    Raises ValueError where it cannot be installed.
    """

    run: Callable[[Options, Path, Path, str], Result]
    """One run, by that interpreter, in the folder train_dir, with the name of the experiment."""

    settings: Callable[[Path], dict[str, Any]]
    """All settings of a run, from its folder train_dir/experiment."""

    shown_settings: Sequence[str] = ()
    """Those that decide how much work a frame is. The JSON file has all of them."""


class Report(NamedTuple):
    """What a trainer says while it trains."""

    at: float  # seconds of the epoch
    frames: int  # trained on so far


class ReturnReport(NamedTuple):
    """What it says of its returns."""

    at: float
    frames: int
    mean_return: float  # of the latest 100 episodes


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


def steady_rate(reports: Sequence[Report]) -> float | None:
    """Frames/s by least squares, so that a batch just before or after a report does not tilt it.

    None if there are fewer than MIN_REPORTS.
    """
    return linear_regression(*zip(*reports, strict=True)).slope if len(reports) >= MIN_REPORTS else None


def result_of(
    title: str,
    log: str,
    reports: Sequence[Report],
    returns: Sequence[ReturnReport],
    to_return: float | None,
    ran: Ran,
) -> Result:
    """What a run comes to by what it reported before it was stopped.

    returns: in the order of time. Raises SystemExit where it failed, or trained too little for a figure.
    """
    if ran.status:
        raise SystemExit(f"{title} ended with status {ran.status}. Its log ends:\n{log[-2000:]}")
    reports = [each for each in reports if each.at <= ran.stopped]
    returns = [each for each in returns if each.at <= ran.stopped]
    reached = None if to_return is None else next((each for each in returns if each.mean_return >= to_return), None)
    rate = steady_rate(reports)
    if len(reports) < MIN_REPORTS and (to_return is None or not (reports or returns)):
        raise SystemExit(f"{title} trained too little: raise --seconds. Its log ends:\n{log[-2000:]}")
    at, frames = max([*reports, *(Report(each.at, each.frames) for each in returns)])
    return Result(
        rate,
        frames,
        at - ran.started,
        ran.left_behind,
        mean_return=returns[-1].mean_return if returns else None,
        seconds_to_return=reached and reached.at - ran.started,
        frames_to_return=reached and reached.frames,
    )
