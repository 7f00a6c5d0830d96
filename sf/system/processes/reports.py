"""What a child says to the parent: a class for each kind of report.

A report crosses a pipe as a line of JSON, the name of its class and its fields, so nothing is unpickled. The parent
gets an object of the same class. To add a report, write its class here, and handle it where the parent reads reports:
`sf.run.reports` for a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, ClassVar


@dataclass(frozen=True)
class Report:
    """Fields are what JSON has: numbers, strings, None, lists and dicts of these."""

    _KINDS: ClassVar[dict[str, type[Report]]] = {}

    def __init_subclass__(cls) -> None:
        Report._KINDS[cls.__name__] = cls

    def encoded(self) -> bytes:
        return json.dumps({"kind": type(self).__name__, **vars(self)}).encode() + b"\n"

    @classmethod
    def decoded(cls, line: bytes) -> Report:
        fields = json.loads(line)
        return cls._KINDS[fields.pop("kind")](**fields)


class Reports:
    """The child's end of the pipe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, report: Report) -> None:
        unsent = report.encoded()
        while unsent:
            unsent = unsent[os.write(self._connection.fileno(), unsent) :]

    def remark(self, about: str, text: str) -> None:
        self.send(Remark(about, text))


# Every child


@dataclass(frozen=True)
class Ready(Report):
    """Its set-up is done."""


@dataclass(frozen=True)
class Say(Report):
    """A sentence for whoever watches."""

    text: str


@dataclass(frozen=True)
class Remark(Report):
    """A sentence that several children may have; one with the same `about` is said once."""

    about: str
    text: str


@dataclass(frozen=True)
class Failed(Report):
    """An exception has ended it. is_final: a new process would not help. traceback: None if the message says it all."""

    message: str
    is_usage_error: bool
    is_final: bool
    traceback: str | None


@dataclass(frozen=True)
class Finished(Report):
    """It has done all that it was asked to."""


# Environments, of rollout workers and of evaluations

WIN_RATE = "win_rate"  # a statistic of episodes, which rollout workers add: `sf.rollout.matches`


@dataclass(frozen=True)
class Episodes(Report):
    """episodes: that have ended, each the fields of `sf.metrics.latest_episodes.EndedEpisode`. lost_episodes: that a
    fault has ended. absent: the actors of the worker that have had no step so far."""

    episodes: list[list[Any]]
    lost_episodes: int
    absent: list[int]


@dataclass(frozen=True)
class MatchesPlayed(Report):
    """matches: that are over, each the fields of `sf.rollout.matches.PlayedMatch`."""

    matches: Sequence[tuple[Sequence[int], Sequence[float]]]


@dataclass(frozen=True)
class EnvFault(Report):
    """The fields of `sf.envs.guard.Fault`."""

    place: str
    message: str
    count: int
    traceback: str | None


@dataclass(frozen=True)
class EpisodesPlayed(Report):
    """episodes: of an evaluation, each the fields of `sf.evaluation.play.episodes.Played`."""

    episodes: list[dict[str, Any]]


@dataclass(frozen=True)
class BegunAnew(Report):
    """A match of an evaluation was cut by a fault: what it has reported does not count."""

    match_idx: int


# Learners


@dataclass(frozen=True)
class LearnerReady(Ready):
    """env_steps, seconds_before: of earlier parts of the run. lost_steps: that the learner before it took, without a
    trace in the weights. weights_event: number of the decision that gave this policy its weights."""

    env_steps: int
    seconds_before: float
    lost_steps: int
    weights_event: int = 0


@dataclass(frozen=True)
class Trained(Report):
    """metrics: by name, since the last one."""

    env_steps: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class HasWeights(Report):
    """What the parent has sent is published."""

    weights_event: int


@dataclass(frozen=True)
class RankWaits(Report):
    """wait_shares: of the time, that each rank waited for the others. lost_steps: of all ranks."""

    wait_shares: list[float]
    lost_steps: int


@dataclass(frozen=True)
class Saved(Report):
    """A checkpoint to go on from."""

    path: str


@dataclass(frozen=True)
class SaveFailed(Report):
    """A checkpoint could not be written; the save is tried again."""

    message: str


@dataclass(frozen=True)
class RolledBack(Report):
    """It has gone back to the last checkpoint, because updates were not finite."""

    text: str
    lost_steps: int
    weights_event: int


@dataclass(frozen=True)
class Saving(Report):
    """It has ended training, and saves for the last time."""


@dataclass(frozen=True)
class LearnerFinished(Finished):
    """Its last checkpoint is written. is_signalled: a rank was asked to end by a signal."""

    env_steps: int
    is_signalled: bool = False


# The evaluator


@dataclass(frozen=True)
class Evaluated(Report):
    """policies: of each its env steps, and its statistics by name, the fields of `sf.evaluation.statistics`."""

    policies: list[dict[str, Any]]
    env_faults: int


@dataclass(frozen=True)
class Exploited(Report):
    """policies: of each its env steps and exploitability."""

    policies: list[dict[str, Any]]


@dataclass(frozen=True)
class Filmed(Report):
    """videos: of each policy that one was made of its policy_id, env_steps, path, returns, and is_cut. failures: why
    others were not. env_steps: of all policies."""

    videos: list[dict[str, Any]]
    failures: list[str]
    env_steps: int


@dataclass(frozen=True)
class BestSaved(Report):
    """A policy has its best score so far, and a checkpoint with it."""

    path: str


# Players that do not learn


@dataclass(frozen=True)
class Seated(Report):
    """The player of this seat is loaded: the parent, which this wakes, looks at the seats."""

    seat: int


@dataclass(frozen=True)
class PlayerFailed(Report):
    """It could not be loaded."""

    name: str
    text: str


# Probes of `sf-train --check`


@dataclass(frozen=True)
class Probed(Report):
    is_ok: bool
    text: str


# The supervisor's own, about a child


@dataclass(frozen=True)
class Replaced(Report):
    """lost_episodes: that were running."""

    text: str
    lost_episodes: int


@dataclass(frozen=True)
class Unreported(Report):
    """lost_episodes: that had ended, and died with the child."""

    lost_episodes: int


@dataclass(frozen=True)
class Killed(Report):
    """It did not stop when it was asked to."""


@dataclass(frozen=True)
class GivenUp(Report):
    """It has died too often, and the run goes on without it."""

    text: str


@dataclass(frozen=True)
class SavedFor(Report):
    """The supervisor has saved what a learner had remembered before it died."""

    path: str
    env_steps: int
