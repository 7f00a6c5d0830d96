"""The one writer of metrics: records go to metrics.jsonl and other sinks, the summary to summary.json.

No file stays open between two records, and missing directories are made again. So a full disk or a removed directory
costs the records of that time and not the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from sf.storage import text_files
from sf.storage.run_dir import RunDir, write_atomically
from sf.system.messages import say


@dataclass(frozen=True)
class VideoRecord:
    """A video of a policy. name: `video`, or `policy_00/video` and so on. env_frames: of all policies at that time."""

    name: str
    env_frames: int
    path: Path  # an mp4
    gif: bytes  # the same as a small animation
    size: tuple[int, int]  # width and height of the gif


class Sink(Protocol):
    """Another place that records go to. Never blocks for long: the parent calls it. name: for messages."""

    name: str

    def write(self, record: dict[str, Any]) -> None:
        """Raises OSError where the record is lost."""

    def write_video(self, video: VideoRecord) -> None:
        """Raises OSError where it is lost."""

    def finish(self, summary: dict[str, Any]) -> None:
        """No more records follow."""


class MetricsWriter:
    """Appends records. A place that takes nothing any more is said once, costs no other, and is tried again."""

    def __init__(self, run_dir: RunDir, sinks: Sequence[Sink] = ()) -> None:
        self._run_dir = run_dir
        self._sinks = sinks
        self._config = run_dir.config.read_bytes()
        self._failing: set[str] = set()  # places

    def write(self, record: dict[str, Any]) -> None:
        of_sinks = {sink.name: partial(sink.write, record) for sink in self._sinks}
        self._to_all("a record", {self._run_dir.metrics.name: lambda: self._append_record(record), **of_sinks})

    def write_evaluation(self, record: dict[str, Any]) -> None:
        """A line of evaluations.jsonl."""
        path = self._run_dir.evaluations
        self._to_all("an evaluation", {path.name: lambda: _append(path, record)})

    def write_video(self, video: VideoRecord) -> None:
        """To all sinks. The file itself is in the run directory already."""
        self._to_all("a video", {sink.name: partial(sink.write_video, video) for sink in self._sinks})

    def write_summary(self, summary: dict[str, Any]) -> None:
        """At the end of the run."""
        try:
            self._run_dir.write_summary(summary)
        except OSError as error:
            say(f"metrics: {self._run_dir.summary.name} cannot be written ({error})")
        for sink in self._sinks:
            try:
                sink.finish(summary)
            except OSError as error:  # noqa: PERF203  one keeps no other from its end
                say(f"metrics: {sink.name} lacks the summary ({error})")

    def _append_record(self, record: dict[str, Any]) -> None:
        if not self._run_dir.config.exists():  # without it, what is saved from now on could not be resumed
            write_atomically(self._run_dir.config, self._config)
        _append(self._run_dir.metrics, record)

    def _to_all(self, what: str, places: Mapping[str, Callable[[], None]]) -> None:
        lost: dict[str, OSError] = {}
        for place, write in places.items():
            try:
                write()
            except OSError as error:  # noqa: PERF203  as above
                lost[place] = error
        new = [f"{place} lacks {what} ({error})" for place, error in lost.items() if place not in self._failing]
        self._failing = self._failing - places.keys() | lost.keys()
        if new:
            say(f"metrics: {', and '.join(new)}; training goes on, and later ones are tried again")


def _append(path: Path, record: dict[str, Any]) -> None:
    """A line. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text_files.append(path, text_files.dumps(record).encode() + b"\n", waits=False)
