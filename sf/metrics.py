"""The one writer of metrics: records go to metrics.jsonl and to TensorBoard, the summary to summary.json.

No file stays open between two records, and missing directories are made again: a full disk, or a directory that was
removed, costs the records of that time and not the run.
"""

from __future__ import annotations

import io
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sf.run_dir import RunDir, write_atomically


class MetricsWriter:
    """Appends flat records. Names with a "/" keep their group in TensorBoard; the others go to "run".

    say: is told once when nothing can be written any more; each record is a new attempt.
    """

    def __init__(self, run_dir: RunDir, say: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._say = say
        self._config = run_dir.config.read_bytes()
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self._events = run_dir.tensorboard / name
        self._is_failing = False

    def write(self, record: dict[str, Any]) -> None:
        with self._failure_said_once():
            if not self._run_dir.config.exists():  # without it, what is saved from now on could not be resumed
                write_atomically(self._run_dir.config, self._config)
            _append(self._run_dir.metrics, json.dumps(record).encode() + b"\n")
            _append(self._events, _event(record), header=_first_event())

    def write_evaluation(self, record: dict[str, Any]) -> None:
        """A line of evaluations.jsonl."""
        with self._failure_said_once():
            _append(self._run_dir.evaluations, json.dumps(record).encode() + b"\n")

    def write_summary(self, summary: dict[str, Any]) -> None:
        with self._failure_said_once():
            self._run_dir.write_summary(summary)

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


def _append(path: Path, data: bytes, header: bytes = b"") -> None:
    """Append all of `data` or nothing, to a new file after its header. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        size = file.tell()
        rest = data if size else header + data
        try:
            while rest:
                rest = rest[file.write(rest) :]  # a disk that gets full takes a part first
        except OSError:
            file.truncate(size)
            raise


def _event(record: dict[str, Any]) -> bytes:
    values = [
        Summary.Value(tag=name if "/" in name else f"run/{name}", simple_value=value)
        for name, value in record.items()
        if isinstance(value, int | float)
    ]
    return _framed(Event(wall_time=time.time(), step=record["env_frames"], summary=Summary(value=values)))


def _first_event() -> bytes:
    return _framed(Event(wall_time=time.time(), file_version="brain.Event:2"))


def _framed(event: Event) -> bytes:
    """One record of an event file, with its length and checksums."""
    buffer = io.BytesIO()
    RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()
