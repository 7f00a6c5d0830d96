"""Defines what starts the runs of sweeps and searches, and the loop over them. `make_launcher` knows all launchers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from sf.config import Config
from sf.envs.field_types import require
from sf.system.processes.stopping import Signals
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.local import LocalLauncher
from sf.tools.sweep.launchers.slurm import SlurmLauncher
from sf.tools.sweep.launchers.slurm_flags import SlurmFlags

Name = Literal["local", "slurm"]
_MOST_REFUSALS = 60  # of a start, while nothing is under way: that many looks, two minutes on one machine


Launcher = LocalLauncher | SlurmLauncher
"""Starts runs, and says how they have ended. `LocalLauncher` says what each method does."""


@dataclass(frozen=True, kw_only=True)
class LaunchFlags:
    """Where runs are started, and how many at once."""

    train_dir: Path = Path("train_dir")
    """The runs go to a folder in this directory that is named after the file."""

    launcher: Name = "local"
    """slurm: each run is a job of a SLURM cluster."""

    parallel: int | None = None
    """Runs at once. Default: as many as the cores allow, given the num_workers of the runs; with --launcher slurm, all
    runs of a sweep, or 8 of a search. Where neither file nor preset sets num_workers, a run gets all cores, or with
    --parallel an equal share."""

    dry_run: bool = False
    """Check the file, print the command of each run, or of a first trial, and stop."""

    trust: bool = False
    """Allow the file to name environments, encoders and models of its own (module:Name). Loading them runs their
    code. Needed only if you have not trained with them before: docs/reliability.md."""

    slurm: SlurmFlags = field(default_factory=SlurmFlags)

    def __post_init__(self) -> None:
        require(self.parallel is None or self.parallel >= 1, f"parallel is {self.parallel}: at least 1")


def make_launcher(flags: LaunchFlags, configs: Sequence[Config]) -> Launcher:
    """configs: of the runs, or of one that stands for all."""
    if flags.launcher == "slurm":
        return SlurmLauncher(flags.slurm, configs, flags.parallel)
    flags.slurm.require_none()
    return LocalLauncher(configs, flags.parallel)


def watch(
    launcher: Launcher,
    signals: Signals,
    start_runs: Callable[[], bool],
    end: Callable[[SweepRun, int, bool], None],
    show: Callable[[], None],
) -> None:
    """Start runs and wait for their ends, until all have ended, or a signal.

    start_runs: starts what there are places for, and returns whether runs still wait. end: is called with a run that
    has ended, its status, and whether the command itself ends. show: is called after each look at the runs.
    """
    try:
        while signals.first is None:
            if not start_runs() and launcher.is_empty:
                break
            for run, status in launcher.wait(signals):
                end(run, status, False)
            show()
    finally:
        for run, status in launcher.stop(signals):
            end(run, status, True)
        show()


class Refusals:
    """Counts the looks in a row at which no run was under way, and a launcher could not start one."""

    def __init__(self, launcher: Launcher, say: Callable[[str], None]) -> None:
        self._launcher = launcher
        self._complain = cache(say)  # each sentence once
        self._num = 0

    def may_wait(self, complaint: str) -> bool:
        """Returns whether the start may be tried again, and says the complaint, if it is new."""
        self._num = self._num + 1 if self._launcher.is_empty else 0
        if self._num == _MOST_REFUSALS:
            return False
        self._complain(complaint)
        return True

    def reset(self) -> None:
        self._num = 0
