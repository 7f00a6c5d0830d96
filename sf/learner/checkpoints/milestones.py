"""When the learner keeps a checkpoint for good: `--save_milestones_sec`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sf.processes.reports import Reports, SaveFailed
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint

_RETRY_AFTER_S = 10.0


class Milestones:
    """A milestone is due each time that this many more seconds of the run have passed, however often it was resumed.

    Missed ones are skipped. `seconds` is the wall time of the run, earlier parts included.
    """

    def __init__(self, directory: Path, every_s: float, seconds: float, reports: Reports) -> None:
        """every_s: 0 for never. seconds: now. Earlier learners have kept what was due until then."""
        self._directory = directory
        self._every_s = every_s
        self._reports = reports
        self._num_passed = self._num_due(seconds)
        self._retry_at = 0.0
        self._is_failing = False

    def is_due(self, seconds: float) -> bool:
        return self._num_due(seconds) > self._num_passed and seconds >= self._retry_at

    def keep(self, make: Callable[[], Checkpoint], seconds: float) -> None:
        """Write what `make` gives. Where that fails, it is due again soon."""
        try:
            path = checkpoint.save_milestone(self._directory, make())
        except (OSError, FloatingPointError) as error:
            self._retry_at = seconds + _RETRY_AFTER_S
            if not self._is_failing:
                self._reports.send(SaveFailed(str(error)))
            self._is_failing = True
            return
        self._is_failing = False
        self._num_passed = self._num_due(seconds)
        self._reports.say(f"keeps {path} for good")

    def _num_due(self, seconds: float) -> int:
        return int(seconds // self._every_s) if self._every_s else 0
