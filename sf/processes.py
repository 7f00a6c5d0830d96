"""How every child process starts, reports to the parent, and ends with it.

A child's body is one module-level function `body(reports, *args)`. Whatever it raises reaches the parent as an `error`
report with the traceback.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


class Reports:
    """The child's end of a pipe to the parent: one JSON object a message, so nothing is unpickled."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, kind: str, **record: Any) -> None:
        self._connection.send_bytes(json.dumps({"kind": kind, **record}).encode())


@dataclass
class Child:
    """A child process as the parent sees it."""

    name: str
    process: BaseProcess
    connection: Connection
    is_ready: bool = False  # it has said that its set-up is done
    is_gone: bool = False

    def receive(self) -> list[dict[str, Any]]:
        """The reports that have arrived. Closes the pipe at its end (or where the child died while it wrote)."""
        records = []
        try:
            while self.connection.poll():
                records.append(json.loads(self.connection.recv_bytes()))
        except (EOFError, OSError):
            self.connection.close()
        return records


def start_fork_server(preload: list[str]) -> None:
    """Start the process that "forkserver" children are forked from; it imports `preload` once, for all of them."""
    multiprocessing.set_forkserver_preload(["sf.fork_server", *preload])
    resource_tracker.ensure_running()
    with _ignored_signals():
        forkserver.ensure_running()


def start(method: str, name: str, body: Callable[..., None], *args: Any) -> Child:
    """Start a process by "spawn" or "forkserver" that runs `body(reports, *args)`."""
    context = multiprocessing.get_context(method)
    parent_end, child_end = context.Pipe(duplex=False)
    process = context.Process(  # type: ignore[attr-defined]  # every context has it
        target=_run, args=(name, os.getpid(), child_end, body, args), name=name
    )
    with _ignored_signals():
        process.start()
    child_end.close()
    return Child(name, process, parent_end)


@contextmanager
def _ignored_signals() -> Iterator[None]:
    """What is started in here ignores Ctrl-C and SIGTERM from its first instruction on.

    A terminal, or a batch system, sends them to all processes of a group: the parent alone decides what to do about
    it. An ignored signal stays ignored across fork and exec. (One that arrives in these milliseconds is lost.)
    """
    handlers = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)


def _run(name: str, parent_pid: int, connection: Connection, body: Callable[..., None], args: tuple) -> None:
    die_with_creator()
    try:
        os.kill(parent_pid, 0)  # it may have died before that took effect
    except ProcessLookupError:
        os._exit(1)
    _set_name(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the fork server resets it
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.set_inheritable(connection.fileno(), False)  # a simulator that outlives this process must not hold it open
    reports = Reports(connection)
    try:
        body(reports, *args)
    except Exception as error:
        reports.send(
            "error",
            message=str(error),
            is_value_error=isinstance(error, ValueError),
            traceback=traceback.format_exc(),
        )
        raise SystemExit(1) from None


def die_with_creator() -> None:
    """SIGKILL this process when the process that forked it (the parent, or its fork server) dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _set_name(name: str) -> None:
    """What ps and top show."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
