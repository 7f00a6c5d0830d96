"""The league.jsonl of a run: what earlier parts of the run wrote, and the matches that this one appends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sf.league import record
from sf.league.players.exploiters import Exploiters
from sf.league.players.pool import Pool
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.ratings import RANDOM
from sf.league.record import ExploiterReset, ExploiterRestarted, Match, Reference, Row, policy_name
from sf.metrics.progress import Progress
from sf.system.messages import say

_WRITES_EVERY_S = 1.0  # what has happened, at most: it waits for the disk


class LeagueRecord:
    """Reads earlier rows, and appends new ones. num_earlier_rows: complete once `earlier_rows` has ended."""

    def __init__(self, run_dir: Path) -> None:
        self.num_earlier_rows = 0
        self._path = run_dir / record.NAME
        self._unwritten: list[Row] = []
        self._is_failing = False

    def earlier_rows(self, exploiters: Exploiters) -> Iterator[Row]:
        """Yield the rows, perhaps millions. `exploiters` gets each, too. Raises ValueError if one is damaged."""
        if not self._path.exists():
            return
        for row in record.rows_of(self._path):
            self.num_earlier_rows += 1
            exploiters.add(row)
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
                say(f"league: {self._path.name} cannot be written ({error}); it is tried again")
            self._is_failing = True
            return False
        self._is_failing = False
        self._unwritten = []
        return True


@dataclass
class MatchResults:
    """Takes matches that rollout workers report to the pool, the exploiters and the record."""

    pool: Pool
    exploiters: Exploiters
    keeper: SeatKeeper
    record: LeagueRecord
    progress: Progress
    # Policies of which each actor had ended an episode when matches were counted last. Before, short matches end
    # first, so their results decide nothing.
    _settled: set[int] = field(default_factory=set)
    _reported: list[Any] = field(default_factory=list)  # since matches were counted last
    _written_at: float = float("-inf")  # when that was tried last

    def add(self, row: ExploiterReset | ExploiterRestarted) -> None:
        """Note that an exploiter is to start again, or does so."""
        self.exploiters.add(row)
        if isinstance(row, ExploiterRestarted):
            self._settled.discard(row.policy)
            self.pool.begin_anew(row)
        self.record.add(row)

    def note(self, matches: Iterable[tuple[Sequence[int], Sequence[float]]]) -> None:
        """Take matches as `sf.system.processes.reports.MatchesPlayed` has them."""
        self._reported += matches

    def write_if_due(self) -> None:
        if time.monotonic() - self._written_at >= _WRITES_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write what has happened since the last call. If the disk does not take it, the next call tries again."""
        self._written_at = time.monotonic()
        self.count()
        self.record.write()

    def count(self) -> None:
        """Count the matches that have been reported since the last call."""
        if not self.progress.has_begun:
            return
        num_policies, policies = self.pool.num_policies, self.progress.policies
        reported, self._reported = self._reported, []
        for who, scores in reported:
            names = tuple(self._name(each) for each in who)
            if self.pool.gone.intersection(names):
                continue  # it cannot play, so that says nothing
            learns = sorted({each for each in who if each < num_policies})
            learning = learns[0]  # no exploiter: each plays with its target
            match = Match(
                names,
                tuple(scores),
                policies[learning].env_steps,
                self.keeper.note_match(learning, names),
                {policy_name(each): policies[each].env_steps for each in learns} if learns[1:] else None,
            )
            self.pool.add(match, self._settled)
            self.exploiters.add(match, self._settled)
            self.record.add(match)
        self.keeper.weigh()
        self._settled = {idx for idx, policy in enumerate(policies) if not policy.num_waited_for}

    def _name(self, who: int) -> str:
        num_policies = self.pool.num_policies
        return policy_name(who) if who < num_policies else self.pool.players[who - num_policies].name
