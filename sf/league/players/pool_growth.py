"""Adds players to the pool of a run: those that it names, and snapshots of its policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sf.config.flags.players import PlayersConfig
from sf.league.players.league_record import LeagueRecord
from sf.league.players.pool import Pool
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.players.snapshots import Snapshots
from sf.league.record import Player
from sf.metrics.progress import Progress
from sf.storage.checkpoint import Checkpoint


@dataclass
class PoolGrowth:
    """Weighs and records each player that joins."""

    config: PlayersConfig
    pool: Pool
    keeper: SeatKeeper
    record: LeagueRecord
    snapshots: Snapshots
    progress: Progress

    def add_named(self, players: Mapping[str, Checkpoint | None]) -> None:
        """Add players that are in the pool from the start, by name; of a policy, its checkpoint."""
        for name, saved in players.items():
            if name not in self.pool.idx:
                self._join(Player(name) if saved is None else self.snapshots.keep_entrant(name, saved))

    def take_snapshot_if_due(self, policy_id: int) -> None:
        if self._is_snapshot_due(policy_id):
            self.take_snapshot(policy_id)

    def take_snapshot(self, policy_id: int) -> bool:
        """Returns whether a snapshot could be taken now."""
        snapshot = self.snapshots.take(policy_id, self.pool.last_snapshot[policy_id])
        if snapshot is not None:
            self._join(snapshot)
        return snapshot is not None

    def _is_snapshot_due(self, policy_id: int) -> bool:
        config, last = self.config, self.pool.last_snapshot[policy_id]
        if not config.snapshot_every_env_steps or config.opponent_weights:  # these are a fixed mixture
            return False
        env_steps, rate = self.progress.policies[policy_id].env_steps, config.snapshot_at_win_rate
        if last is None or env_steps - last >= config.snapshot_every_env_steps:
            return True
        return self.pool.is_gone or (rate is not None and self.pool.beats_the_pool(policy_id, rate))

    def _join(self, player: Player) -> None:
        self.pool.join(player)
        self.keeper.weigh()
        self.record.add(player)
