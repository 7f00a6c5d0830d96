"""Defines what starts the runs of sweeps and searches, and the loop over them. `make_launcher` knows all launchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

from sf.config import Config
from sf.system.processes.stopping import Signals
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.local import LocalLauncher
from sf.tools.sweep.launchers.slurm import SlurmLauncher
from sf.tools.sweep.launchers.slurm_flags import SlurmFlags

Name = Literal["local", "slurm"]
_MOST_REFUSALS = 60  # of a start, while nothing is under way: that many looks, two minutes on one machine


class Launcher(Protocol):
    """Starts runs, and says how they have ended. Before `open`, it only plans."""

    places: int  # for runs at once
    workers: list[int]  # of each run

    def require(self) -> None:
        """Raises ValueError where runs cannot be started so here."""

    def open(self, directory: Path, places: int, say: Callable[[str], None]) -> None:
        """directory: each run has one inside. places: runs at once. say: prints a sentence."""

    @property
    def has_place(self) -> bool: ...

    @property
    def is_empty(self) -> bool:
        """Whether no run is under way."""

    def start(self, run: SweepRun) -> str:
        """Start it, or go on with it where its directory has a checkpoint. Only where there is a place.

        Returns what was done, in words that go before the name of the run. Raises OSError where it cannot be started
        now.
        """

    def is_queued(self, run: SweepRun) -> bool:
        """Returns whether the run still waits for a machine."""

    def wait(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """Wait for an end, a signal, or the time to look at the runs; yields those that have ended, with their status.

        The status of one that died of a signal is negative.
        """

    def interrupt(self, run: SweepRun) -> None:
        """Ask it to save and end, where it is under way."""

    def stop(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """The command ends: yields the runs that end with it, with their status."""

    def log(self, run: SweepRun) -> Path:
        """Returns the file with its output."""

    def last_words(self, run: SweepRun) -> str:
        """Returns why it has failed, in a line."""


def make_launcher(name: Name, slurm: SlurmFlags, configs: Sequence[Config], parallel: int | None) -> Launcher:
    """configs: of the runs, or of one that stands for all. parallel: runs at once. None: the launcher's choice."""
    if name == "slurm":
        return SlurmLauncher(slurm, configs, parallel)
    slurm.require_none()
    return LocalLauncher(configs, parallel)


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
        self._say = say
        self._num = 0
        self._complaint: str | None = None

    def may_wait(self, complaint: str) -> bool:
        """Returns whether the start may be tried again, and says the complaint, if it is another than the last one."""
        self._num = self._num + 1 if self._launcher.is_empty else 0
        if self._num == _MOST_REFUSALS:
            return False
        if complaint != self._complaint:
            self._complaint = complaint
            self._say(complaint)
        return True

    def reset(self) -> None:
        self._num = 0
