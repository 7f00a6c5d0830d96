"""Begins the process of a run, and says how it has ended; a job of a cluster is one run of sf-train.

submitit pickles a `TrainingJob` into the directory of the sweep, and loads it in the job. How the run has ended is left
there as a text, so nothing is unpickled where the sweep is watched.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sf.storage.run_dir import write_atomically
from sf.storage.text_files import open_to_append

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

# Statuses of a run that was: one that still starts up dies of the signal.
ASKED_TO_END = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)
_PR_SET_PDEATHSIG = 1
_TOO_OFTEN = 1
# SLURM signals every process of a job before its time limit, and submitit asks for one of these.
_FOR_THE_JOB_ALONE = (signal.SIGUSR1, signal.SIGUSR2)


def begin(cores: Sequence[int] | None = None, ignored: Sequence[signal.Signals] = ()) -> None:
    """Runs in the process of a run before its program: keep to the cores of its place, and save when the parent dies.

    A command in the background of a script has SIGINT ignored, and what it starts would ignore it, too.

    cores: None leaves those that it was given. ignored: signals that are not for the run, nor for its own processes.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for signum in ignored:
        signal.signal(signum, signal.SIG_IGN)
    if cores is not None:
        os.sched_setaffinity(0, cores)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


@dataclass(frozen=True)
class End:
    """The end of a run. status: negative if it died of a signal. sentence: why it does not go on, though it could."""

    status: int
    sentence: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether the run is not to go on: it was not asked to end, or has been too often."""
        return self.sentence is not None or self.status not in ASKED_TO_END


def end_file(folder: Path) -> Path:
    """folder: of the job."""
    return folder / "end.json"


def read_end(folder: Path) -> End | None:
    """None: the run has not ended, or not by itself, or the file is not to be seen yet."""
    try:
        found = json.loads(end_file(folder).read_bytes())
        status, sentence = found["status"], found["sentence"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return End(status, sentence if isinstance(sentence, str) else None) if type(status) is int else None


class TrainingJob:
    """command: of the run, whose output goes to the end of `log`. folder: of the job. num_requeues: that are left."""

    def __init__(self, command: Sequence[str], log: Path, folder: Path, num_requeues: int) -> None:
        self._command = list(command)
        self._log = log
        self._folder = folder
        self._num_requeues = num_requeues
        self._pidfd: int | None = None

    def __call__(self) -> None:
        """Run it to its end. Raises SystemExit with its status where that is not 0, for the cluster's own records."""
        end_file(self._folder).unlink(missing_ok=True)  # of this job before it was queued again
        with open_to_append(self._log) as log:
            popen = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=partial(begin, ignored=_FOR_THE_JOB_ALONE),  # noqa: PLW1509  there are no threads here
            )
        self._pidfd = os.pidfd_open(popen.pid)
        # `checkpoint` interrupts this, and popen.wait holds a lock that it would wait for.
        connection.wait([self._pidfd])
        status = popen.wait()
        self._write(End(status))
        if status:
            raise SystemExit(status if status > 0 else 128 - status)

    def checkpoint(self) -> DelayedSubmission | None:
        """submitit calls it from a handler of signals: before the time limit, and where the job has to make room.

        The run saves and ends. Returns what goes on in the same job when it is its turn again; None: it has been that
        often enough.
        """
        from submitit.helpers import DelayedSubmission  # noqa: PLC0415

        if self._pidfd is not None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGINT)
            connection.wait([self._pidfd])
        if self._num_requeues == 0:
            self._write(
                End(_TOO_OFTEN, "it was at its time limit, or had to make room, once more than --retries allows")
            )
            return None
        self._write(End(ASKED_TO_END[0]))
        return DelayedSubmission(TrainingJob(self._command, self._log, self._folder, self._num_requeues - 1))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pidfd": None}

    def _write(self, end: End) -> None:
        text = json.dumps({"status": end.status, "sentence": end.sentence})
        write_atomically(end_file(self._folder), text.encode())
