"""Appends to the league.jsonl of a run. What the disk does not take is tried again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sf.league import record
from sf.league.record import Player, Row


class RecordWriter:
    """say: tells the user."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._unwritten: list[Row] = []
        self._is_failing = False

    @property
    def lacks_players(self) -> bool:
        """Whether one is yet to be written."""
        return any(isinstance(row, Player) for row in self._unwritten)

    def add(self, row: Row) -> None:
        self._unwritten.append(row)

    def write(self) -> bool:
        """Write all that was added. Returns whether the disk has it."""
        if not self._unwritten:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)  # somebody may have removed it
            record.append(self._path, self._unwritten)
        except OSError as error:
            if not self._is_failing:
                self._say(f"league: {self._path.name} cannot be written ({error}); it is tried again")
            self._is_failing = True
            return False
        self._is_failing = False
        self._unwritten = []
        return True
