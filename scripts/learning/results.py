"""The file of results: a line of JSON for each run that ended, also for one that failed.

The disk has a line before the next run begins. What a crash leaves of a last line does not count, and is removed when
the next one is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sf.storage import text_files

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
    newest: dict[Key, Record] = {}
    for record in records:
        as_one = {}
        _, is_own, state = record["trainer"].partition(OWN)
        if is_own:
            kept = {name: value for name, value in record["settings"].items() if name == "environment"}
            as_one = {"trainer": f"{OWN}newest", "title": "this project", "commit": state, "settings": kept}
        newest[key_of({**record, **as_one})] = {**record, **as_one}
    return sorted(newest.values(), key=lambda record: not record["trainer"].startswith(OWN))


class Results:
    """What is in the file, and what comes to it."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError where the file cannot be read, or a line is broken."""
        self.path = path
        self.records: list[Record] = []
        try:
            lines = list(text_files.whole_lines(path)) if path.exists() else []
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror}): name another --results") from None
        for number, line in enumerate(lines, start=1):
            if line.strip():
                self.records.append(_parsed(line, f"{path}, line {number}"))

    def append(self, record: Record) -> None:
        """Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = text_files.dumps(record)
        text_files.append(self.path, f"{line}\n".encode())
        self.records.append(json.loads(line))

    def latest(self) -> dict[Key, Record]:
        """The last word on each run."""
        return {key_of(record): record for record in self.records}


def _parsed(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not record.keys() >= _FIELDS:
        raise ValueError(f"{where} is no result: fix the line, or remove it")
    return record
