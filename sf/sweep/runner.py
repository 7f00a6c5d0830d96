"""Runs sf-train again and again, several at a time.

Every run is a process of its own, with its output in a file of its directory. One that fails does not keep the others
from running. When the sweep is asked to stop, or dies, its runs are asked to: they save, and resume next time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pathlib import Path

from sf.processes.stopping import Signals
from sf.storage.run_dir import RunDir
from sf.sweep.grid import SweepRun
from sf.sweep.results import Result, State, is_done, read_result

_PR_SET_PDEATHSIG = 1
_SHOW_EVERY_S = 2.0


@dataclass
class _Process:
    run: SweepRun
    popen: subprocess.Popen
    pidfd: int
    place: int  # among those that run at once


class SweepRunner:
    """directory: of the sweep; each run has one inside. cores: of each place; that many run at once.

    gpus: names of those that the places are spread over; none: they are left to the runs.
    """

    def __init__(
        self,
        runs: Sequence[SweepRun],
        directory: Path,
        cores: Sequence[Sequence[int]],
        gpus: Sequence[str],
        say: Callable[[str], None],
        show: Callable[[Sequence[Result]], None],
    ) -> None:
        self._runs = runs
        self._directory = directory
        self._cores = cores
        self._free_places = list(range(len(cores)))
        self._gpus = gpus
        self._say = say
        self._show = show
        self._processes: list[_Process] = []
        self._is_stopping = False
        self._states: dict[str, State] = {
            run.name: "done" if is_done(run, self._run_dir(run)) else "waiting" for run in runs
        }

    @property
    def results(self) -> list[Result]:
        return [read_result(run, self._run_dir(run), self._states[run.name]) for run in self._runs]

    def run(self, signals: Signals) -> None:
        """Until all have ended, or a signal."""
        waiting = [run for run in self._runs if self._states[run.name] == "waiting"]
        num_done = len(self._runs) - len(waiting)
        if num_done:
            self._say(f"{num_done} of {len(self._runs)} runs are done already")
        try:
            while (waiting or self._processes) and signals.first is None:
                while waiting and self._free_places:
                    self._start(waiting.pop(0))
                self._wait(signals)
                self._show(self.results)
        finally:
            self._stop(signals)
            self._show(self.results)

    def _run_dir(self, run: SweepRun) -> RunDir:
        return RunDir(self._directory / run.name)

    def log(self, run: SweepRun) -> Path:
        """Beside the directory of the run, which is the run's own to make."""
        return self._directory / f"{run.name}.log"

    def _start(self, run: SweepRun) -> None:
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
                start_new_session=True,  # Ctrl-C reaches the sweep alone, which passes it on
                preexec_fn=partial(_begin, self._cores[place]),  # noqa: PLW1509  there are no threads here
            )
        self._processes.append(_Process(run, popen, os.pidfd_open(popen.pid), place))
        self._states[run.name] = "running"
        self._say(f"started {run.name}")

    def _wait(self, signals: Signals) -> None:
        """For an end, a signal, or the time to show what there is."""
        ready = connection.wait([*(process.pidfd for process in self._processes), signals.wakeup], _SHOW_EVERY_S)
        signals.clear_wakeup()
        for process in [process for process in self._processes if process.pidfd in ready]:
            self._end(process)

    def _end(self, process: _Process) -> None:
        """It has ended."""
        status = process.popen.wait()
        os.close(process.pidfd)
        self._processes.remove(process)
        self._free_places.append(process.place)
        name = process.run.name
        if status == 0:
            self._states[name] = "done"
            self._say(f"done {name}")
        elif self._is_stopping or status in (128 + signal.SIGINT, 128 + signal.SIGTERM):
            self._states[name] = "stopped"
            self._say(f"stopped {name}")
        else:
            self._states[name] = "failed"
            lines = self.log(process.run).read_text(errors="replace").strip().splitlines() or ["no output"]
            self._say(f"failed {name} (status {status}): {lines[-1]}; all it said is in {self.log(process.run)}")

    def _stop(self, signals: Signals) -> None:
        """Ask what still runs to save and end. A second signal kills it."""
        self._is_stopping = True
        for process in self._processes:
            process.popen.send_signal(signal.SIGINT)
        while self._processes:
            self._wait(signals)
            if signals.is_urgent:
                for process in self._processes:
                    process.popen.kill()


def _begin(cores: Sequence[int]) -> None:
    """In the process of a run, before its program: keep to the cores of its place, and save when the sweep dies.

    A sweep in the background of a script has SIGINT ignored, and what it starts would ignore the sweep's own, too.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.sched_setaffinity(0, cores)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
