"""When the learner writes a checkpoint to go on from: `--save_every_sec`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from sf.config import RunConfig
from sf.processes.reports import Reports, Saved, SaveFailed
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint

_RETRY_AFTER_S = 10.0


class PeriodicCheckpoints:
    """The checkpoints of one policy, each in the place of older ones.

    saved_version: of the policy in the newest one; None where there is none yet. error: why the last save failed; None
    where it did not.
    """

    def __init__(self, directory: Path, config: RunConfig, reports: Reports) -> None:
        self.saved_version: int | None = None
        self._directory = directory
        self._config = config
        self._reports = reports
        self.error: OSError | FloatingPointError | None = None
        self.postpone()

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due_at

    def make_due(self) -> None:
        self._due_at = time.monotonic()

    def postpone(self) -> None:
        """The next one is due as long from now as after a save."""
        self._due_at = time.monotonic() + self._config.save_every_sec

    def save(self, make: Callable[[], Checkpoint], version: int, env_steps: int) -> bool:
        """Write what `make` gives. Where that fails, it is due again soon, and False is returned."""
        try:
            path = checkpoint.save(self._directory, make(), env_steps, self._config.keep_checkpoints)
        except (OSError, FloatingPointError) as error:
            self._due_at = time.monotonic() + _RETRY_AFTER_S
            if self.error is None:
                self._reports.send(SaveFailed(str(error)))
            self.error = error
            return False
        self.error = None
        self.saved_version = version
        self.postpone()
        self._reports.send(Saved(str(path)))
        return True
