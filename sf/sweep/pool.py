"""Several runs of sf-train at once, each a process with cores of its own.

Each run writes its output to a file beside its directory. When the process that holds the pool dies, its runs are asked
to end: they save, and resume next time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pathlib import Path

from sf.processes.stopping import Signals
from sf.sweep.grid import SweepRun

_PR_SET_PDEATHSIG = 1
_LOOK_EVERY_S = 2.0
ASKED_TO_END = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # statuses of a run that was


@dataclass
class _Process:
    run: SweepRun
    popen: subprocess.Popen
    pidfd: int
    place: int


class RunPool:
    """directory: each run has one inside. cores: of each place; as many runs at once as there are places.

    gpus: names of those that the places are spread over; none: they are left to the runs.
    """

    def __init__(self, directory: Path, cores: Sequence[Sequence[int]], gpus: Sequence[str]) -> None:
        self._directory = directory
        self._cores = cores
        self._gpus = gpus
        self._free_places = list(range(len(cores)))
        self._processes: list[_Process] = []

    @property
    def has_place(self) -> bool:
        return bool(self._free_places)

    @property
    def is_empty(self) -> bool:
        return not self._processes

    def log(self, run: SweepRun) -> Path:
        """Beside the directory of the run, which the run itself makes."""
        return self._directory / f"{run.name}.log"

    def last_words(self, run: SweepRun) -> str:
        """The last line of its output."""
        lines = self.log(run).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"

    def start(self, run: SweepRun) -> None:
        """Start it, or go on with it where its directory has a checkpoint. Only where there is a place."""
        place = self._free_places.pop(0)
        command = [sys.executable, "-m", "sf", *run.arguments(self._directory)]
        environment = dict(os.environ)
        if self._gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpus[place % len(self._gpus)]
        with self.log(run).open("ab") as log:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches the command alone, which passes it on
                preexec_fn=partial(begin, self._cores[place]),  # noqa: PLW1509  there are no threads here
            )
        self._processes.append(_Process(run, popen, os.pidfd_open(popen.pid), place))

    def wait(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """Wait for an end, a signal, or the time to look at the runs; yields those that have ended, with their status.

        The status of one that died of a signal is negative.
        """
        ready = connection.wait([*(process.pidfd for process in self._processes), signals.wakeup], _LOOK_EVERY_S)
        signals.clear_wakeup()
        for process in [process for process in self._processes if process.pidfd in ready]:
            status = process.popen.wait()
            os.close(process.pidfd)
            self._processes.remove(process)
            self._free_places.append(process.place)
            yield process.run, status

    def interrupt(self, run: SweepRun) -> None:
        """Ask it to save and end, where it is under way."""
        for process in self._processes:
            if process.run == run:
                process.popen.send_signal(signal.SIGINT)

    def stop(self, signals: Signals) -> Iterator[tuple[SweepRun, int]]:
        """Ask all to save and end; yields each with its status. A second signal kills them."""
        for process in self._processes:
            process.popen.send_signal(signal.SIGINT)
        while self._processes:
            yield from self.wait(signals)
            if signals.is_urgent:
                for process in self._processes:
                    process.popen.kill()


def make_directory(directory: Path) -> None:
    """That of the runs. Raises ValueError where it cannot be made."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{directory} cannot hold the runs ({error.strerror}): name another --train_dir") from None


def begin(cores: Sequence[int]) -> None:
    """In the process of a run, before its program: keep to the cores of its place, and save when the parent dies.

    A command in the background of a script has SIGINT ignored, and what it starts would ignore it, too.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.sched_setaffinity(0, cores)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
