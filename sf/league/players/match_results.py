"""Takes the results of matches from the journals of rollout workers to the pool, the exploiters and the record."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from sf.league.players.exploiters import Exploiters
from sf.league.players.league_record import LeagueRecord
from sf.league.players.pool import Pool
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.record import ExploiterReset, ExploiterRestarted, Match, policy_name
from sf.metrics.progress import Progress
from sf.storage.match_journal import JournalReader

_WRITES_EVERY_S = 1.0  # what has happened, at most: it waits for the disk


@dataclass
class MatchResults:
    """Collects matches that have ended, and writes them down with all else that happens in the league."""

    pool: Pool
    exploiters: Exploiters
    keeper: SeatKeeper
    record: LeagueRecord
    journal: JournalReader
    progress: Progress
    # Policies of which each actor had ended an episode when matches were collected last. Before, short matches end
    # first, so their results decide nothing.
    _settled: set[int] = field(default_factory=set)
    _written_at: float = float("-inf")  # when that was tried last

    def add(self, row: ExploiterReset | ExploiterRestarted) -> None:
        """Note that an exploiter is to start again, or does so."""
        self.exploiters.add(row)
        if isinstance(row, ExploiterRestarted):
            self._settled.discard(row.policy)
            self.pool.begin_anew(row)
        self.record.add(row)

    def write_if_due(self) -> None:
        if time.monotonic() - self._written_at >= _WRITES_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write what has happened since the last call. If the disk does not take it, the next call tries again."""
        self._written_at = time.monotonic()
        self._collect()
        if self.record.write():
            self.journal.remove_ended()

    def write_players(self) -> bool:
        """Count the matches that have ended, write all players, and return whether the record on disk has them."""
        self._collect()
        return not self.record.lacks_players or self.record.write()

    def end(self) -> None:
        """Write the last results once no rollout worker lives any more."""
        self._collect()
        if self.record.write() and self.progress.has_begun:
            self.journal.remove_all()

    def _collect(self) -> None:
        """Count the matches since the last call. The first call takes those that an earlier session left behind."""
        if not self.progress.has_begun:
            return
        num_policies, policies = self.pool.num_policies, self.progress.policies
        for file, line, played in self.journal.read(self.keeper.num_policies, num_policies + len(self.pool.players)):
            names = tuple(self._name(each) for each in played.who)
            if self.pool.gone.intersection(names):
                continue  # it cannot play, so that says nothing
            learns = sorted({each for each in played.who if each < num_policies})
            learning = learns[0]  # no exploiter: each plays with its target
            match = Match(
                names,
                played.scores,
                policies[learning].env_steps,
                self.keeper.note_match(learning, names),
                (file, line),
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
