"""What sweeps and searches ask of whoever starts their runs. `make_launcher` alone knows which of these there are."""

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
MOST_REFUSALS = 60  # of a start, while nothing is under way: that many looks, two minutes on one machine


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

        Returns what was done, in words that go before the name of the run. Raises OSError where it cannot be started,
        and of these BlockingIOError where it may be later.
        """

    def is_queued(self, run: SweepRun) -> bool:
        """Whether the run still waits for a machine."""

    def wait(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """Wait for an end, a signal, or the time to look at the runs; yields those that have ended, with their status.

        The status of one that died of a signal is negative.
        """

    def interrupt(self, run: SweepRun) -> None:
        """Ask it to save and end, where it is under way."""

    def stop(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """The command ends: yields the runs that end with it, with their status."""

    def log(self, run: SweepRun) -> Path:
        """Where all is that it said."""

    def last_words(self, run: SweepRun) -> str:
        """Why it has failed, in a line."""


def make_launcher(name: Name, slurm: SlurmFlags, configs: Sequence[Config], parallel: int | None) -> Launcher:
    """configs: of the runs, or of one that stands for all. parallel: runs at once. None: the launcher's choice."""
    if name == "slurm":
        return SlurmLauncher(slurm, configs, parallel)
    slurm.require_none()
    return LocalLauncher(configs, parallel)
