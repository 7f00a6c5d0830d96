"""The league.jsonl of earlier parts of a run. It may have millions of rows, which are gone through one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sf.league import record
from sf.league.ratings import RANDOM
from sf.league.record import Match, Row
from sf.players.exploiters import Exploiters


class EarlierRecord:
    """exploiters: get all rows. journals: how many lines of each the record has. reference: the ratings at which it
    holds players.

    Raises ValueError where a row is damaged.
    """

    def __init__(self, path: Path, exploiters: Exploiters) -> None:
        self._path = path
        self._exploiters = exploiters
        self.num_rows = 0
        self.journals: dict[str, int] = {}
        self.reference: Mapping[str, float] = record.reference_of(path) if path.exists() else {}

    def held(self, players: Iterable[str]) -> Mapping[str, float] | None:
        """The ratings that are known: of the reference pool, else of random moves, which are as strong in every run.

        players: that join now, beside those of before. None where there is neither.
        """
        before = (player.name for player in record.players_of(self._path)) if self._path.exists() else ()
        return self.reference or ({RANDOM: 0.0} if RANDOM in {*players, *before} else None)

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
