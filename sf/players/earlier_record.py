"""The league.jsonl of earlier parts of a run. It may have millions of rows, which are gone through one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sf.league import record
from sf.league.record import Match, Row
from sf.players.exploiters import Exploiters


class EarlierRecord:
    """exploiters: get all rows. journals: how many lines of each the record has."""

    def __init__(self, path: Path, exploiters: Exploiters) -> None:
        self._path = path
        self._exploiters = exploiters
        self.num_rows = 0
        self.journals: dict[str, int] = {}

    def rows(self) -> Iterator[Row]:
        """Raises ValueError where one is damaged."""
        if not self._path.exists():
            return
        for row in record.rows_of(self._path):
            self.num_rows += 1
            self._exploiters.add(row)
            if isinstance(row, Match) and row.journal is not None:
                file, line = row.journal
                self.journals[file] = line
            yield row
