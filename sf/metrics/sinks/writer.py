"""The one writer of metrics: records go to metrics.jsonl and other sinks, the summary to summary.json.

No file stays open between two records, and missing directories are made again. So a full disk or a removed directory
costs the records of that time and not the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sf.storage import finite_json, json_lines
from sf.storage.run_dir import RunDir, write_atomically


@dataclass(frozen=True)
class VideoRecord:
    """A video of a policy.

    name: `video`, or with several policies `policy_00/video` and so on. env_frames: of all policies, when it was made.
    """

    name: str
    env_frames: int
    path: Path  # an mp4
    gif: bytes  # the same as a small animation
    size: tuple[int, int]  # width and height of the gif


class Sink(Protocol):
    """Another place that records go to. Never blocks for long: the parent of all processes calls it."""

    def write(self, record: dict[str, Any]) -> None:
        """Raises OSError where the record is lost."""

    def write_video(self, video: VideoRecord) -> None:
        """Raises OSError where it is lost."""

    def finish(self, summary: dict[str, Any]) -> None:
        """No more records follow."""


class MetricsWriter:
    """Appends flat records.

    say: told once when nothing can be written any more. Each further record is a new attempt.
    """

    def __init__(self, run_dir: RunDir, say: Callable[[str], None], sinks: Sequence[Sink] = ()) -> None:
        self._run_dir = run_dir
        self._say = say
        self._sinks = sinks
        self._config = run_dir.config.read_bytes()
        self._is_failing = False

    def write(self, record: dict[str, Any]) -> None:
        with self._failure_said_once():
            if not self._run_dir.config.exists():  # without it, what is saved from now on could not be resumed
                write_atomically(self._run_dir.config, self._config)
            _append(self._run_dir.metrics, record)
            for sink in self._sinks:
                sink.write(record)

    def write_evaluation(self, record: dict[str, Any]) -> None:
        """A line of evaluations.jsonl."""
        with self._failure_said_once():
            _append(self._run_dir.evaluations, record)

    def write_video(self, video: VideoRecord) -> None:
        """To all sinks. The file itself is in the run directory already."""
        with self._failure_said_once():
            for sink in self._sinks:
                sink.write_video(video)

    def write_summary(self, summary: dict[str, Any]) -> None:
        """At the end of the run."""
        with self._failure_said_once():
            self._run_dir.write_summary(summary)
        for sink in self._sinks:
            sink.finish(summary)

    @contextmanager
    def _failure_said_once(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._is_failing:
                self._say(f"metrics: a record is lost ({error}); training goes on, and later records are tried again")
            self._is_failing = True
        else:
            self._is_failing = False


def _append(path: Path, record: dict[str, Any]) -> None:
    """A line. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    json_lines.append(path, finite_json.dumps(record).encode() + b"\n", waits=False)
