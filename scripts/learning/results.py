"""The file of results: a line of JSON for each run that ended, also for one that failed.

A line is appended in one write, which the disk has before the next run begins. A crash in the middle leaves a last line
that is no JSON. It does not count, and is removed when the next one is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sf.storage import finite_json

NAME = "results.jsonl"
Record = dict[str, Any]
Key = tuple[str, str, int, int, str]

_FIELDS = {"trainer", "title", "task", "frames", "seed", "settings", "state"}
FINISHED, FAILED = "finished", "failed"


def key_of(record: Mapping[str, Any]) -> Key:
    """What makes a run another one: trainer with commit, task, frames, seed and settings."""
    settings = json.dumps(record["settings"], sort_keys=True)
    return record["trainer"], record["task"], record["frames"], record["seed"], settings


class Results:
    """What is in the file, and what comes to it."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError where the file cannot be read, or a line before the last is broken."""
        self.path = path
        self.records: list[Record] = []
        self.has_unfinished_line = False
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = b""
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror}): name another --results") from None
        lines = content.rstrip().split(b"\n") if content.strip() else []
        self._whole = len(content)
        for number, line in enumerate(lines, start=1):
            record = _parsed(line)
            if record is not None:
                self.records.append(record)
            elif number == len(lines):
                self.has_unfinished_line = True
                self._whole = len(content.rstrip()) - len(line)
            elif line.strip():
                raise ValueError(f"{path}, line {number} is no result: mend the line, or remove it")
        self._ends_line = self._whole == 0 or content[: self._whole].endswith(b"\n")

    def append(self, record: Record) -> None:
        """Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.ftruncate(fd, self._whole)
            line = finite_json.dumps(record)
            data = (b"" if self._ends_line else b"\n") + line.encode() + b"\n"
            written = os.pwrite(fd, data, self._whole)
            if written < len(data):
                raise OSError(f"{self.path}: only {written} of {len(data)} bytes could be written")
            os.fsync(fd)
        finally:
            os.close(fd)
        self._whole, self._ends_line = self._whole + len(data), True
        self.records.append(json.loads(line))

    def latest(self) -> dict[Key, Record]:
        """The last word on each run."""
        return {key_of(record): record for record in self.records}


def _parsed(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.keys() >= _FIELDS else None
