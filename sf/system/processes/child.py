"""How every child process starts, reports to the parent, and ends with it.

A child's body is one module-level function `body(reports, *args)`. Whatever it raises reaches the parent as a report
`Failed` with the traceback.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

from sf.envs.errors import EnvError, UsageError
from sf.system.messages import said_to
from sf.system.processes.creator import die_with_creator
from sf.system.processes.fork_servers import GONE_WITHIN_S, ForkServer
from sf.system.processes.reports import Failed, Report, Reports, Say
from sf.system.processes.stopping import STOP_SIGNALS

_PR_SET_NAME = 15


class FinalError(RuntimeError):
    """Raised by a child that a new one could not help: it is not replaced, and the run ends with this sentence."""


class SaidError(RuntimeError):
    """Raised by a child that has reported the traceback before: this sentence says the rest."""


@dataclass(eq=False)
class Child:
    """A child process as the parent sees it."""

    role: str  # its kind, for example `rollout`
    idx: int
    process: BaseProcess
    connection: Connection
    unread: bytes = b""  # the beginning of a report
    is_ready: bool = False  # it has said that its set-up is done
    error: Failed | None = None  # what it said of the exception that ended it
    beat: float = -1.0  # its heartbeat
    beat_at: float = 0.0  # when that was seen first, or the child had nothing to do
    hung_for_s: float | None = None  # it was killed because it hung

    @property
    def name(self) -> str:
        return f"{self.role}-{self.idx}"

    def cause_of_death(self) -> str:
        """In words. It has ended, and been joined."""
        if self.error is not None:
            message, text = self.error.message, self.error.traceback
            return message if text is None else f"{message}\n\n{text}"
        if self.hung_for_s is not None:
            return f"made no progress for {self.hung_for_s:.0f} s (--worker_timeout_s) and was killed"
        code = self.process.exitcode
        if code is not None and code < 0:
            names = {signum.value: signum.name for signum in signal.Signals}
            return f"died of {names.get(-code, f'signal {-code}')}"
        return f"ended with exit code {code}"

    def receive(self) -> list[Report]:
        """Returns the reports that have arrived, without a wait for the rest of one. Closes the pipe at its end."""
        while not self.connection.closed and self.connection.poll():
            data = os.read(self.connection.fileno(), 65536)
            self.unread += data
            if not data:
                self.connection.close()
        *lines, self.unread = self.unread.split(b"\n")
        return [Report.decoded(line) for line in lines]

    def join(self) -> list[Report]:
        """Wait until it is gone for good, and let go of it; its last reports.

        The end of the fork server is heard of a moment before its children, which it takes with it, are gone; their
        pipe ends with them.
        """
        self.process.join()
        reports: list[Report] = []
        while not self.connection.closed and self.connection.poll(GONE_WITHIN_S):
            reports += self.receive()
        self.connection.close()
        return reports


def start_child(server: ForkServer, role: str, idx: int, body: Callable[..., None], *args: Any) -> Child:
    """Start a process, forked from `server`, that runs `body(reports, *args)`."""
    name = f"{role}-{idx}"
    context = multiprocessing.get_context("forkserver")
    parent_end, child_end = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(name, dict(os.environ), child_end, body, args), name=name)
    server.start(process)
    child_end.close()
    return Child(role, idx, process, parent_end, beat_at=time.monotonic())


def _run(name: str, environ: Mapping[str, str], connection: Connection, body: Callable[..., None], args: tuple) -> None:
    die_with_creator()
    if os.getppid() != sys.modules["sf.system.processes.preload"].PID:
        os._exit(1)  # it had died before that took effect
    gc.freeze()  # a collection writes to what it looks at: all that is shared with the siblings would be copied
    gc.enable()
    os.environ.clear()
    os.environ.update(environ)  # that of the fork server is as old as it is
    set_name(name)
    _leave_stopping_to_the_parent()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    os.set_inheritable(connection.fileno(), False)  # a simulator that outlives this process must not hold it open
    reports = Reports(connection)
    try:
        with said_to(lambda text: reports.send(Say(text))):
            body(reports, *args)
    except Exception as error:
        _send_error(reports, error)
        raise SystemExit(1) from None


def _leave_stopping_to_the_parent() -> None:
    """Signals that ask a run to stop do nothing here, but SIGTERM ends what this process starts.

    An environment may end a simulator by it, and a signal that is ignored stays so in every process below.
    """
    for signum in STOP_SIGNALS:
        signal.signal(signum, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda signum, frame: None)  # which a program that is executed does not inherit
    signal.siginterrupt(signal.SIGTERM, False)

    def in_what_was_forked() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    os.register_at_fork(  # a SIGTERM that comes as it is forked waits until it counts
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM}),
        after_in_child=in_what_was_forked,
    )


def end_with_error(reports: Reports, error: Exception) -> NoReturn:
    """End this process from a thread of it, as if its body had raised `error`."""
    _send_error(reports, error)
    os._exit(1)


def _send_error(reports: Reports, error: Exception) -> None:
    is_usage_error, is_final = isinstance(error, UsageError), isinstance(error, FinalError)
    text: str | None = None
    if not isinstance(error, SaidError | FinalError):
        text = error.traceback if isinstance(error, EnvError) else "".join(traceback.format_exception(error))
    with suppress(BrokenPipeError):  # the parent has died, and takes this process with it in a moment
        reports.send(Failed(str(error), is_usage_error, is_final, text))


def set_name(name: str) -> None:
    """What ps and top show."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
