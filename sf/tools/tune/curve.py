"""Reads what a run has reached by given env steps from its metrics, as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sf.storage import run_records


class Curve:
    """values: the objective at each of `rungs` (env steps, ascending), as far as the run is: on the line between the
    records before and after it. None: no record is before it.

    metrics: the metrics.jsonl of the run. A record in which the objective is not known yet is passed over. So is a mean
    over few episodes after one over enough: the first that end after a resume are the short ones. num_policies: of the
    run.
    """

    def __init__(self, metrics: Path, objective: str, rungs: Sequence[int], num_policies: int = 1) -> None:
        self.values: list[float | None] = []
        self._metrics = metrics
        self._objective = objective
        self._rungs = rungs
        self._num_policies = num_policies
        self._offset = 0  # bytes that have been read
        self._is_settled = False  # whether a record was over enough episodes
        self._before: tuple[float, float] | None = None  # env steps and objective of the last record

    def read(self) -> None:
        """Reads what has been written since the last time. A line that is half written is read the next time."""
        try:
            with self._metrics.open("rb") as file:
                file.seek(self._offset)
                written = file.read()
        except OSError:
            return
        whole = written[: written.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            record = run_records.parsed(line)
            if self._objective in record and "env_steps" in record:
                is_settled = run_records.is_settled(record, self._objective, self._num_policies)
                if self._is_settled and not is_settled:
                    continue
                self._is_settled = is_settled
                self._add(record["env_steps"], record[self._objective])

    def _add(self, env_steps: float, value: float) -> None:
        for rung in self._rungs[len(self.values) :]:
            if env_steps < rung:
                break
            if env_steps == rung:
                self.values.append(float(value))
            elif self._before is None:
                self.values.append(None)
            else:
                steps_before, value_before = self._before
                share = (rung - steps_before) / (env_steps - steps_before)
                self.values.append(value_before + share * (value - value_before))
        self._before = env_steps, value
