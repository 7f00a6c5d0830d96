"""Everything that a campaign does to a run."""

from __future__ import annotations

from faults.kinds import of_processes, of_runs, of_sweeps
from faults.kinds.fault import Fault

FAULTS: tuple[Fault, ...] = (*of_processes.FAULTS, *of_runs.FAULTS, *of_sweeps.FAULTS)
