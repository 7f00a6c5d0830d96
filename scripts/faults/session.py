"""One `sf-train`, started as a user starts it, watched, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.bookkeeping import NotRecoveredError
from faults.machine import patience
from faults.watch import PATIENCE_S, Beginning, RunWatch

from sf.system.processes.creator import die_with_creator


def start_process(arguments: Sequence[str], log: Path, folder: Path | None = None) -> subprocess.Popen:
    """`python arguments`, in a process group of its own, that ends with this process; its output goes to `log`."""
    with log.open("w") as output:
        return start([sys.executable, *arguments], cwd=folder, stdout=output, stderr=subprocess.STDOUT)


def run_beside(arguments: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`python arguments` to its end, beside the run. Raises NotRecoveredError where it does not end."""
    within_s = patience(PATIENCE_S)
    command = [sys.executable, *arguments]
    with start(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate(timeout=within_s)
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            said = (error.stderr or b"").decode(errors="replace")
            raise NotRecoveredError(f"beside the run, another did not end within {within_s:.0f} s: {said}") from None
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen:
    """Starts a process that ends with this one, in a session of its own, so that it gets as much of the CPU as a run.

    options: of Popen.
    """
    # A SIGTERM waits: Python ignores what its handler raises in the calls around a fork.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return subprocess.Popen(command, start_new_session=True, preexec_fn=partial(_begin, before), **options)  # noqa: PLW1509  no threads here
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(mask: Collection[int]) -> None:
    """Prepares a new process before it becomes another program. mask: of its signals."""
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    die_with_creator()  # a campaign that is killed leaves no run
    for signum in (signal.SIGHUP, signal.SIGINT):  # of a campaign under nohup or in the background it would ignore them
        signal.signal(signum, signal.SIG_DFL)


class Session(RunWatch):
    """A run that trains, from `start` to `end`."""

    def __init__(self, flags: list[str], log: Path, folder: Path | None = None) -> None:
        """folder: where it is started."""
        self.folder = folder
        beginning = Beginning.of(flags)
        self._process = start_process(["-m", "sf", *flags], log, folder)
        try:
            super().__init__(flags, beginning, self._process.pid, log, self._process.poll)
        except BaseException:
            self.kill()
            raise

    # Of the campaign

    def losses(self) -> tuple[int, int]:
        """Frames and episodes that are lost by now."""
        return int(self.metric("lost_frames")), int(self.metric("lost_episodes"))

    def losses_with_the_end(self) -> tuple[int, int]:
        """Frames and episodes that are lost since it has ended."""
        return self.plan.spec.frameskip * (self.env_steps - self.env_steps_saved()), self.plan.num_actors

    def finish(self) -> None:
        """It would train for ever."""
        if self.exit_status is not None:
            raise NotRecoveredError(f"it ended by itself, with status {self.exit_status}")
        self.kill()

    # The end

    def send_signal(self, signum: int) -> None:
        self._process.send_signal(signum)

    def wait_for_end(self) -> int:
        """The exit status."""
        try:
            return self._process.wait(max(PATIENCE_S, patience(PATIENCE_S)))
        except subprocess.TimeoutExpired:
            raise NotRecoveredError(f"it did not end within {PATIENCE_S:g} s") from None

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """As with Ctrl-Z: none of its processes runs meanwhile."""
        os.killpg(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
