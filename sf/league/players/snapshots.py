"""Keeps snapshots of the policies of a run: files in its directory, from which players are loaded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sf.envs import UsageError
from sf.league.record import Player, policy_name
from sf.shared.recovery import RecoveryMemory
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint

DIRECTORY = "league"  # in that of the run

_LOOK_FOR_STATE_EVERY_S = 1.0  # of a learner, for a snapshot that is due


def beginning_of(run_dir: Path, policy_id: int) -> Path:
    """Returns the checkpoint from which an exploiter begins anew."""
    return run_dir / DIRECTORY / f"beginning_{policy_id:02d}.safetensors"


def kept_at(run_dir: Path, name: str) -> Path:
    """Returns where the weights of a player are, for as long as the run is there."""
    return run_dir / DIRECTORY / f"{name}.safetensors"


class Snapshots:
    """recoveries: by policy, the state that its learner keeps for a successor. say: tells the user."""

    def __init__(self, run_dir: Path, recoveries: Sequence[RecoveryMemory], say: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._recoveries = recoveries
        self._say = say
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
                self._say(f"league: a snapshot of policy {policy_id} cannot be written ({error}); it is tried again")
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
        """Write what it takes to play, unless it is there already. Returns the path within the run directory.

        Raises OSError where it cannot be written.
        """
        path = kept_at(self._run_dir, name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(path, checkpoint.without_optimizer(saved))
        return f"{DIRECTORY}/{path.name}"
