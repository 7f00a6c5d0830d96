"""What a run has reached by given env steps, read from its metrics as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sf.report.records import parsed


class Curve:
    """values: the objective at the first record at or after each of `rungs` (env steps, ascending), as far as it is.

    metrics: the metrics.jsonl of the run. A record in which the objective is not known yet is passed over.
    """

    def __init__(self, metrics: Path, objective: str, rungs: Sequence[int]) -> None:
        self.values: list[float] = []
        self._metrics = metrics
        self._objective = objective
        self._rungs = rungs
        self._offset = 0  # bytes that have been read

    def read(self) -> None:
        """What has been written since the last time. A line that is half written is read the next time."""
        try:
            with self._metrics.open("rb") as file:
                file.seek(self._offset)
                written = file.read()
        except OSError:
            return
        whole = written[: written.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            record = parsed(line) or {}
            value, env_steps = record.get(self._objective), record.get("env_steps", -1)
            while value is not None and len(self.values) < len(self._rungs):
                if env_steps < self._rungs[len(self.values)]:
                    break
                self.values.append(float(value))
