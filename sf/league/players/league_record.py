"""The league.jsonl of a run: what earlier parts of the run wrote, and what this one appends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from sf.league import record
from sf.league.players.exploiters import Exploiters
from sf.league.ratings import RANDOM
from sf.league.record import Match, Player, Reference, Row


class LeagueRecord:
    """Reads earlier rows one by one, as there may be millions, and appends new ones.

    num_earlier_rows, journals: complete once `earlier_rows` has ended: how many rows there were, and how many lines of
    each journal they stand for.
    """

    def __init__(self, run_dir: Path, say: Callable[[str], None]) -> None:
        """say: tells the user."""
        self.num_earlier_rows = 0
        self.journals: dict[str, int] = {}
        self._path = run_dir / record.NAME
        self._say = say
        self._unwritten: list[Row] = []
        self._is_failing = False

    def earlier_rows(self, exploiters: Exploiters) -> Iterator[Row]:
        """Yield all rows, each of which `exploiters` gets, too. Raises ValueError if one is damaged."""
        if not self._path.exists():
            return
        for row in record.rows_of(self._path):
            self.num_earlier_rows += 1
            exploiters.add(row)
            if isinstance(row, Match) and row.journal is not None:
                file, line = row.journal
                self.journals[file] = line
            yield row

    def held(self, reference: Mapping[str, float], players: Iterable[str]) -> Mapping[str, float] | None:
        """Returns the ratings at which players are held: those of `reference`, which is recorded if it is new, else of
        the record, else of random moves, which are as strong in every run. Returns None if there are none.

        players: the names of those that join now, beside the earlier ones. Raises ValueError if a row is damaged.
        """
        has_rows = self._path.exists()
        earlier = record.reference_of(self._path) if has_rows else {}
        if reference not in ({}, earlier):
            self.add(Reference(reference))
        before = (player.name for player in record.players_of(self._path)) if has_rows else ()
        return reference or earlier or ({RANDOM: 0.0} if RANDOM in {*players, *before} else None)

    @property
    def lacks_players(self) -> bool:
        """Whether a player is yet to be written."""
        return any(isinstance(row, Player) for row in self._unwritten)

    def add(self, row: Row) -> None:
        self._unwritten.append(row)

    def write(self) -> bool:
        """Write all that was added, and return whether the disk has it. If it has not, the next call tries again."""
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
