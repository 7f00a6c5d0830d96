"""Decides when the state of a learner is written: as a checkpoint, as a milestone, or for a successor."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sf.learner.args import LearnerArgs
from sf.learner.state import LearnerState
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.output_file import is_full
from sf.storage.run_dir import UNSAVED
from sf.system.messages import say
from sf.system.processes.child import FinalError
from sf.system.processes.reports import Reports, Saved, SaveFailed

_RETRY_AFTER_S = 10.0
_REMEMBER_EVERY_S = 5.0  # a successor loses this much training, unless writing takes long
_REMEMBER_FOR_SNAPSHOTS_EVERY_S = 1.0  # which are taken of this state
_REMEMBER_COSTS = 0.02  # the largest share of the time of the training thread
_SAVE_AGAIN_AFTER_S = 2.0  # at the end of the run
_SAVE_AGAIN_TIMES = 5
_NOT_SAVED = (
    f"{UNSAVED} {{}} ({{}}): {{}}. The same command goes on from the newest checkpoint, and what was trained since "
    "is lost"
)


class Saver:
    """Writes the state of a learner: checkpoints (`--save_every_sec`), each in the place of older ones, milestones
    (`--save_milestones_sec`), and the memory that a successor reads.

    A milestone is due each time that this many more seconds of the run have passed, however often it was resumed.
    Missed ones are skipped.

    saved_version: of the policy in the newest checkpoint; None before the first.
    """

    def __init__(self, args: LearnerArgs, state: LearnerState, reports: Reports) -> None:
        self._args, self._config, self._state, self._reports = args, args.config.run, state, reports
        self.saved_version = state.updater.version if state.is_resumed else None
        self._checkpoints, self._milestones = _Writer(state, reports), _Writer(state, reports)
        self._milestone_at = self._milestone_after(state.seconds)  # earlier learners have kept what was due until now
        players = args.config.players
        has_snapshots = players.with_players and players.snapshot_every_env_steps > 0
        self._remember_every_s = _REMEMBER_FOR_SNAPSHOTS_EVERY_S if has_snapshots else _REMEMBER_EVERY_S
        self._remember_at = time.monotonic()
        self._save_at = time.monotonic() + self._config.save_every_sec

    @property
    def is_save_due(self) -> bool:
        """Returns False while updates are skipped: if that does not end, the run goes back to the last checkpoint."""
        return time.monotonic() >= self._save_at and self._state.updater.skipped.in_row == 0

    def weights_are_replaced(self) -> None:
        """Save soon, as the weights from before are of no use any more."""
        self._save_at = self._remember_at = time.monotonic()

    def weights_are_rolled_back(self) -> None:
        """A successor must not go on with the state from before, and the new one has to last before it is saved."""
        self._remember_at = time.monotonic()
        self._save_at = time.monotonic() + self._config.save_every_sec

    def write_what_is_due(self) -> None:
        if self.is_save_due:
            self.save()
        self.keep_milestone_if_due()
        self.remember_if_due()

    def save(self) -> bool:
        """Write a checkpoint if anything was trained since the last. If that fails, it is due again soon."""
        version, env_steps, config = self._state.updater.version, self._state.env_steps, self._config
        if self.saved_version == version or not self._args.place.saves:
            return True
        directory, keep = self._args.checkpoints, config.keep_checkpoints

        def write(made: Checkpoint) -> Path:
            if self._state.games is not None:
                self._state.games.save(directory)
            return checkpoint.save(directory, made, env_steps, keep)

        path = self._checkpoints.write(write)
        self._save_at = time.monotonic() + (_RETRY_AFTER_S if path is None else config.save_every_sec)
        if path is None:
            return False
        self.saved_version = version
        self._reports.send(Saved(str(path)))
        return True

    def save_at_the_end(self) -> None:
        """Write the last checkpoint. Waits some seconds for room on the disk.

        Writes none if the run ended before anything was trained: new weights would bind the next start to spaces and
        flags that the person may have to change.

        Raises FinalError if it cannot be written, after it has kept the state, which the parent tries to save. Raises
        FloatingPointError if the state holds NaN or Inf: a successor has one that does not.
        """
        is_new = self._state.env_steps == 0 and not self._state.has_trained and self.saved_version is None
        if is_new and not self._args.stop.is_after_failure():
            say("nothing was trained, so there is no checkpoint: the same command begins anew")
        if is_new or self.save():
            return
        self._remember()
        for _ in range(_SAVE_AGAIN_TIMES):
            error = self._checkpoints.error
            if not isinstance(error, OSError):
                raise FloatingPointError(f"the last checkpoint could not be written: {error}")
            time.sleep(_SAVE_AGAIN_AFTER_S)
            self._args.counters.working()
            if self.save():
                return
        error = self._checkpoints.error
        how = "make room there" if is_full(error) else "make it writable"
        raise FinalError(_NOT_SAVED.format(self._args.checkpoints, error, how))

    def keep_milestone_if_due(self) -> None:
        """Write a checkpoint that is kept for good, though not while updates are skipped."""
        seconds = self._state.seconds
        if not self._args.place.is_first or seconds < self._milestone_at or self._state.updater.skipped.in_row:
            return
        path = self._milestones.write(lambda made: checkpoint.save_milestone(self._args.milestones, made))
        if path is None:
            self._milestone_at = seconds + _RETRY_AFTER_S
            return
        self._milestone_at = self._milestone_after(seconds)
        say(f"keeps {path} for good")

    def _milestone_after(self, seconds: float) -> float:
        every_s = self._config.save_milestones_sec
        return (seconds // every_s + 1) * every_s if every_s else math.inf

    def remember_if_due(self) -> None:
        """Keep the state for a successor."""
        begun_at = time.monotonic()
        if begun_at >= self._remember_at:
            self._remember()
            now = time.monotonic()
            self._remember_at = now + max(self._remember_every_s, (now - begun_at) / _REMEMBER_COSTS)

    def _remember(self) -> None:
        with suppress(FloatingPointError):
            self._args.recoveries[self._args.policy_id].write(self._state.checkpoint())


class _Writer:
    """Writes checkpoints of one kind, and reports the first of several failures in a row.

    error: why the last one failed; None if it did not.
    """

    def __init__(self, state: LearnerState, reports: Reports) -> None:
        self._state, self._reports = state, reports
        self.error: OSError | FloatingPointError | None = None

    def write(self, write: Callable[[Checkpoint], Path]) -> Path | None:
        """Returns what `write` does, or None if it failed."""
        try:
            path = write(self._state.checkpoint())
        except (OSError, FloatingPointError) as error:
            if self.error is None:
                self._reports.send(SaveFailed(str(error)))
            self.error = error
            return None
        self.error = None
        return path
