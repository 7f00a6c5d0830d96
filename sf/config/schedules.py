"""Schedules: how a value follows the training of a policy. `--anneal` makes some, and older flags make others.

A value is an option of the environment, which an episode has from its beginning, or a flag that its part of the
configuration lists in `ANNEALED`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sf.envs.errors import UsageError

ENV = "env."  # before the name of an option of the environment
_NUM_MOVES = 10  # from one end to the other, of values that are not whole numbers
_FORMS = "write NAME=FROM:TO@STEPS, NAME=FROM:TO@METRIC:X or NAME=LOW..HIGH, for example gamma=0.99:0.998@1000000"
_NUMBER = r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_LINE = re.compile(
    rf"(?P<name>[A-Za-z_][\w.]*)=(?P<start>{_NUMBER})(?:\.\.(?P<high>{_NUMBER})|:(?P<end>{_NUMBER})@"
    rf"(?:(?P<metric>[A-Za-z_][\w/.]*):(?P<threshold>{_NUMBER})|(?P<steps>{_NUMBER})))"
)


@dataclass(frozen=True)
class Stage:
    """Says how far the training of a policy is.

    env_steps: of the policy. share_done: of the run, from 0 to 1. moves: how often each `ByMetric` has moved, by name.
    """

    env_steps: int = 0
    share_done: float = 0.0
    moves: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Schedule:
    """Takes a value from `start` to `end`. name: of a flag, or `env.NAME`."""

    name: str
    start: float
    end: float

    def share(self, stage: Stage) -> float:
        """Returns the share of the way that is done, from 0 on; more than 1 means all."""
        raise NotImplementedError

    def value(self, stage: Stage) -> float:
        share = min(1.0, self.share(stage))
        return self.start * (1.0 - share) + self.end * share


@dataclass(frozen=True)
class BySteps(Schedule):
    """Moves linearly in the first `num_steps` env steps of the policy."""

    num_steps: int

    def share(self, stage: Stage) -> float:
        return stage.env_steps / self.num_steps


@dataclass(frozen=True)
class ByMetric(Schedule):
    """Makes one of `num_moves` whenever the mean of a metric over the latest episodes reaches `threshold`.

    Only episodes that began at the present value count, and the value never goes back.
    """

    metric: str
    threshold: float
    num_moves: int

    def share(self, stage: Stage) -> float:
        return stage.moves.get(self.name, 0) / self.num_moves


@dataclass(frozen=True)
class ByShare(Schedule):
    """Moves by the share of the run that is done. shape: maps that share to one of the way."""

    shape: Callable[[float], float]

    def share(self, stage: Stage) -> float:
        return self.shape(stage.share_done)


@dataclass(frozen=True)
class Drawn(Schedule):
    """Draws a value for each episode, uniformly from `start` to `end`: domain randomisation (Tobin et al. 2017)."""

    def value(self, stage: Stage) -> float:
        return math.nan


@dataclass(frozen=True)
class Evolved(Schedule):
    """Is written by the evolution of a population alone. start, end: both the value of `--env_options`."""


def parse(lines: Iterable[str]) -> tuple[Schedule, ...]:
    """Returns the schedules of `--anneal`. Raises UsageError for a line of another form, or a second one of a name."""
    found: dict[str, Schedule] = {}
    for line in lines:
        schedule = _parsed(line)
        if schedule.name in found:
            raise UsageError(f"anneal names {schedule.name} twice: leave one of both out")
        found[schedule.name] = schedule
    return tuple(found.values())


def final_options(schedules: Sequence[Schedule]) -> dict[str, tuple[float, float]]:
    """Returns the options of the environment after training, by name: the range that each is drawn from."""
    options = [each for each in schedules if each.name.startswith(ENV)]
    return {
        each.name.removeprefix(ENV): (each.start if isinstance(each, Drawn) else each.end, each.end) for each in options
    }


def _parsed(line: str) -> Schedule:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise UsageError(f"anneal is {line!r}: {_FORMS}")
    name, start = match["name"], float(match["start"])
    if match["high"] is not None:
        schedule: Schedule = Drawn(name, start, float(match["high"]))
        if schedule.end < start:
            raise UsageError(f"anneal is {line!r}: the second number is less than the first, so swap them")
        if not name.startswith(ENV):
            raise UsageError(f"anneal is {line!r}: only an option of the environment ({ENV}NAME) can be drawn")
        return schedule
    end = float(match["end"])
    if match["metric"] is None:
        num_steps = float(match["steps"])
        if num_steps < 1 or num_steps != int(num_steps):
            raise UsageError(f"anneal is {line!r}: the env steps after @ must be a whole number, and at least 1")
        return BySteps(name, start, end, int(num_steps))
    are_whole = not {*".eE"} & {*match["start"], *match["end"]}
    num_moves = max(1, round(abs(end - start))) if are_whole else _NUM_MOVES
    return ByMetric(name, start, end, match["metric"].removeprefix("stats/"), float(match["threshold"]), num_moves)
