"""`--launcher local`: runs several sf-train processes at once on this machine, each with cores of its own.

The launcher says how many run at once, with how many workers, on which GPUs. Each run writes its output to a file
beside its directory. When the command dies, its runs are asked to end: they save, and resume next time.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pathlib import Path

from sf.config import Config
from sf.storage import run_lock
from sf.storage.text_files import open_to_append
from sf.system.machine.cores import num_usable_cores, shares, usable_cores
from sf.system.messages import nobody, said_to
from sf.system.processes.stopping import Signals
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.training_job import begin
from sf.tools.sweep.sweep_dir import last_line, log_of

_LOOK_EVERY_S = 2.0


def share_out(configs: Sequence[Config], parallel: int | None) -> tuple[int, list[int]]:
    """Returns how many runs there is room for at once, and the number of workers of each.

    parallel: how many were asked for. None: as many as the cores allow.
    """
    cores = num_usable_cores()
    share = cores if parallel is None else -(-cores // parallel)
    chosen = [config.sampler.num_workers for config in configs]
    workers = [share if num == "auto" else num for num in chosen]
    return parallel or max(1, cores // max(workers)), workers


def gpus_of(configs: Sequence[Config]) -> Sequence[str]:
    """Names of the GPUs, where the runs use any and have one policy each: several spread over them by themselves."""
    from sf.system import gpu  # noqa: PLC0415

    uses_one = all(config.run.device != "cpu" and config.population.num_policies == 1 for config in configs)
    return gpu_names(gpu.count(), os.environ.get("CUDA_VISIBLE_DEVICES")) if uses_one else ()


def gpu_names(num_gpus: int, visible: str | None) -> list[str]:
    """Returns what CUDA_VISIBLE_DEVICES may name: its own entries, numbers or UUIDs, where it is set to `visible`.

    num_gpus: that CUDA sees; it reads the entries up to the first that is no GPU.
    """
    names = map(str, range(num_gpus)) if visible is None else visible.split(",")
    return [name.strip() for name in names][:num_gpus]


@dataclass
class _Process:
    run: SweepRun
    popen: subprocess.Popen
    pidfd: int
    place: int


class LocalLauncher:
    """Starts runs, and says how they have ended. Before `open`, it only plans.

    configs: of the runs, or of one that stands for all. parallel: runs at once. None: as many as the cores allow.
    places: for runs at once. workers: of each run.
    """

    def __init__(self, configs: Sequence[Config], parallel: int | None) -> None:
        self.places, self.workers = share_out(configs, parallel)
        self._configs = configs
        self._processes: list[_Process] = []

    def require(self) -> None:
        """Raises ValueError where runs cannot be started so here, which here is never."""

    def open(self, directory: Path, places: int, say: Callable[[str], None]) -> None:
        """directory: each run has one inside. places: runs at once. say: prints a sentence."""
        self._directory = directory
        self._cores = shares(usable_cores(), places, num_usable_cores())
        self._gpus = gpus_of(self._configs)  # names of those that the places are spread over; none: left to the runs
        self._free_places = list(range(places))

    @property
    def has_place(self) -> bool:
        return bool(self._free_places)

    @property
    def is_empty(self) -> bool:
        return not self._processes

    def log(self, run: SweepRun) -> Path:
        """Returns the file with its output."""
        return log_of(self._directory, run.name)

    def last_words(self, run: SweepRun) -> str:
        """Returns why it has failed, in a line: the last one of its output."""
        return last_line(self.log(run)) or "no output"

    def is_queued(self, run: SweepRun) -> bool:
        """Returns whether the run still waits for a machine."""
        return False

    def start(self, run: SweepRun) -> str:
        """Start it, or go on with it where its directory has a checkpoint. Only where there is a place.

        Returns what was done, in words that go before the name of the run. Raises OSError where it cannot be started
        now, such as while a process of an earlier start still saves in the run's directory.
        """
        _require_unlocked(self._directory / run.name)
        place = self._free_places[0]
        environment = dict(os.environ)
        if self._gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpus[place % len(self._gpus)]
        with open_to_append(self.log(run)) as log:
            popen = subprocess.Popen(
                run.command(self._directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches the command alone, which passes it on
                preexec_fn=partial(begin, self._cores[place]),  # noqa: PLW1509  there are no threads here
            )
        self._free_places.remove(place)
        self._processes.append(_Process(run, popen, os.pidfd_open(popen.pid), place))
        return "started"

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


def _require_unlocked(directory: Path) -> None:
    try:
        with said_to(nobody), run_lock.held(directory):
            pass
    except run_lock.HeldError as error:
        raise OSError(str(error)) from None
    except ValueError:  # it cannot be locked, which the run itself says
        pass
