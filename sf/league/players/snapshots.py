"""Adds players to the pool of a run, and keeps their weights in files of its directory, from which they are loaded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sf.config.flags.players import PlayersConfig
from sf.envs import UsageError
from sf.league.players.league_record import LeagueRecord
from sf.league.players.pool import Pool
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.record import Player, policy_name
from sf.metrics.progress import Progress
from sf.shared.recovery import RecoveryMemory
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.system.messages import say

DIRECTORY = "league"  # in that of the run

_LOOK_FOR_STATE_EVERY_S = 1.0  # of a learner, for a snapshot that is due


def beginning_of(run_dir: Path, policy_id: int) -> Path:
    """Returns the checkpoint from which an exploiter begins anew."""
    return run_dir / DIRECTORY / f"beginning_{policy_id:02d}.safetensors"


def kept_at(run_dir: Path, name: str) -> Path:
    """Returns where the weights of a player are, for as long as the run is there."""
    return run_dir / DIRECTORY / f"{name}.safetensors"


class Snapshots:
    """Writes the files. recoveries: by policy, the state that its learner keeps for a successor."""

    def __init__(self, run_dir: Path, recoveries: Sequence[RecoveryMemory]) -> None:
        self._run_dir = run_dir
        self._recoveries = recoveries
        self._looked_at = [float("-inf")] * len(recoveries)
        self._is_failing = False

    def take(self, policy_id: int, last: int | None) -> Player | None:
        """Take a snapshot of the state that the learner keeps for a successor, which may be some seconds old.

        last: env steps of the latest snapshot. Returns None if there is nothing newer yet, or it cannot be written: the
        caller tries again.
        """
        if time.monotonic() - self._looked_at[policy_id] < _LOOK_FOR_STATE_EVERY_S:
            return None
        self._looked_at[policy_id] = time.monotonic()
        remembered = self._recoveries[policy_id].read()
        if remembered is None:
            return None
        env_steps = int(remembered.state["env_steps"])
        if last is not None and env_steps <= last:
            return None
        name = f"{policy_name(policy_id)}_{env_steps:012d}"
        try:
            path = self.keep(name, remembered)
        except OSError as error:
            if not self._is_failing:
                say(f"league: a snapshot of policy {policy_id} cannot be written ({error}); it is tried again")
            self._is_failing = True
            return None
        self._is_failing = False
        return Player(name, policy_id, env_steps, path)

    def keep_entrant(self, name: str, saved: Checkpoint) -> Player:
        """Keep a copy of a player from elsewhere. Raises UsageError if it cannot be written."""
        try:
            path = self.keep(name, saved)
            kept = checkpoint.load(kept_at(self._run_dir, name))  # perhaps by an earlier start, which has not joined it
        except OSError as error:
            raise UsageError(
                f"{self._run_dir / DIRECTORY} cannot be written ({error.strerror}): name another --train_dir"
            ) from None
        return Player(name, path=path, weights=checkpoint.weights_of(kept))

    def keep(self, name: str, saved: Checkpoint) -> str:
        """Write what it takes to play, unless it is there. Returns the path in the run directory. Raises OSError."""
        path = kept_at(self._run_dir, name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(path, checkpoint.without_optimizer(saved))
        return f"{DIRECTORY}/{path.name}"


@dataclass
class PoolGrowth:
    """Adds players to the pool: those that the run names, and snapshots. It weighs and records each that joins."""

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

    def take_snapshot(self, policy_id: int) -> bool:
        """Returns whether a snapshot could be taken now."""
        snapshot = self.snapshots.take(policy_id, self.pool.last_snapshot[policy_id])
        if snapshot is not None:
            self._join(snapshot)
        return snapshot is not None

    def is_snapshot_due(self, policy_id: int) -> bool:
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
