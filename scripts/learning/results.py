"""The file of results: a line of JSON for each run that ended, also for one that failed.

The disk has a line before the next run begins. A crash in the middle leaves a last line that is no JSON. It does not
count, and is removed when the next one is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sf.storage import text_files
from sf.storage.text_files import open_to_append

NAME = "results.jsonl"
Record = dict[str, Any]
Key = tuple[str, str, int, int, str]

_FIELDS = {"trainer", "title", "task", "frames", "seed", "settings", "state"}
FINISHED, FAILED = "finished", "failed"
OWN = "own@"  # and the commit, and flags


def key_of(record: Mapping[str, Any]) -> Key:
    """What makes a run another one: trainer with commit, task, frames, seed and settings."""
    settings = json.dumps(record["settings"], sort_keys=True)
    return record["trainer"], record["task"], record["frames"], record["seed"], settings


def newest_own(records: Iterable[Record]) -> list[Record]:
    """All states of this project as one trainer, before the peers: of each task, frames and seed its last run.

    So a table can grow over months: what a change can have touched is run again, the rest is kept. The commit of a
    record has its flags with it.
    """
    as_one = map(_of_no_state, records)
    newest = {key_of(record): record for record in as_one}
    return sorted(newest.values(), key=lambda record: not record["trainer"].startswith(OWN))


def _of_no_state(record: Record) -> Record:
    _, is_own, state = record["trainer"].partition(OWN)
    if not is_own:
        return record
    kept = {name: value for name, value in record["settings"].items() if name == "environment"}
    return {**record, "trainer": f"{OWN}newest", "title": "this project", "commit": state, "settings": kept}


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
        self._lacks_end = self._whole > 0 and not content[: self._whole].endswith(b"\n")

    def append(self, record: Record) -> None:
        """Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._mend_end()
        line = text_files.dumps(record)
        text_files.append(self.path, f"{line}\n".encode())
        self.records.append(json.loads(line))

    def _mend_end(self) -> None:
        """Of the file as it was read, once: a broken last line goes, and a whole one gets the end that it lacks."""
        if self.has_unfinished_line:
            os.truncate(self.path, self._whole)
            self.has_unfinished_line = False
        if self._lacks_end:
            with open_to_append(self.path) as file:
                file.write(b"\n")
            self._lacks_end = False

    def latest(self) -> dict[Key, Record]:
        """The last word on each run."""
        return {key_of(record): record for record in self.records}


def _parsed(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.keys() >= _FIELDS else None
