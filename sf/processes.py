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
from collections.abc import Callable
from dataclasses import dataclass
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

    def receive(self) -> list[dict[str, Any]]:
        """The reports that have arrived; empty at the end of the pipe as well."""
        records = []
        try:
            while self.connection.poll():
                records.append(json.loads(self.connection.recv_bytes()))
        except (EOFError, ConnectionError):
            pass
        return records


def start(method: str, name: str, body: Callable[..., None], *args: Any) -> Child:
    """Start a process by "spawn" or "forkserver" that runs `body(reports, *args)`."""
    context = multiprocessing.get_context(method)
    parent_end, child_end = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(name, os.getpid(), child_end, body, args), name=name)  # type: ignore[attr-defined]
    process.start()
    child_end.close()
    return Child(name, process, parent_end)


def _run(name: str, parent_pid: int, connection: Connection, body: Callable[..., None], args: tuple) -> None:
    _die_with_the_creator(parent_pid)
    _set_name(name)
    # The terminal sends Ctrl-C to every process of its group: the parent alone decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reports = Reports(connection)
    try:
        body(reports, *args)
    except Exception as error:
        reports.send(
            "error",
            message=str(error),
            is_user_error=isinstance(error, ValueError),
            traceback=traceback.format_exc(),
        )
        raise SystemExit(1) from None


def _die_with_the_creator(parent_pid: int) -> None:
    """SIGKILL this process when the process that forked it (the parent, or its fork server) dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        os.kill(parent_pid, 0)  # it may have died before prctl took effect
    except ProcessLookupError:
        os._exit(1)


def _set_name(name: str) -> None:
    """What ps and top show."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
