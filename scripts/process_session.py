"""Runs a program of many processes for a bounded time, and leaves no process and no shared memory of it.

Other programs may run on the machine, and use names of the same form in shared memory. So only descendants of
this process are killed, and only memory that one of them was seen to map is removed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from faults.machine import adopt_orphans
from faults.processes import alive_below

SHUTDOWN_S = 30.0  # a program that needs longer to stop is killed
TIDY_S = 10.0  # the same, when this process is to end
ASK_EVERY_S = 1.0  # whether it is done
SETTLE_S = 2.0  # its last children may end this much after it

MAPPED_FILE = re.compile(r" (/dev/shm/(?:ViZDoom|torch_|sem\.mp-)\S+)$", re.MULTILINE)
"""Shared memory in /proc/PID/maps that a killed engine or trainer leaves behind."""


class Ran(NamedTuple):
    """Of a program: when it was started, and when it ended or was told to, in seconds of the epoch."""

    started: float
    stopped: float
    left_behind: int  # its processes that had to be killed
    status: int | None = None  # with which it ended by itself; None if it was told to


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """SIGTERM raises SystemExit inside, once, so that what was started is ended. A handler of the caller stays."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(signum: int, _: object) -> NoReturn:
    signal.signal(signum, signal.SIG_IGN)
    sys.exit(128 + signum)


@sigterm_raises()
def run_bounded(
    command: list[str],
    log_file: Path,
    seconds: float,
    is_done: Callable[[], bool] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Ran:
    """Runs `command` for at most `seconds`, or until `is_done`, which is asked each second. Then interrupts it.

    variables: of its environment, beside those of this process. Its processes that outlive it or SHUTDOWN_S are killed,
    also on an interrupt or SIGTERM.
    """
    adopt_orphans()
    shared: set[Path] = set()
    started = time.time()
    program: subprocess.Popen | None = None
    try:
        with log_file.open("w") as log:
            program = subprocess.Popen(
                command,
                cwd=log_file.parent,
                env={**os.environ, **(variables or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + seconds
        while program.poll() is None and (left := deadline - time.monotonic()) > 0 and not (is_done and is_done()):
            with suppress(subprocess.TimeoutExpired):
                program.wait(left if is_done is None else min(left, ASK_EVERY_S))
        stopped, status = time.time(), program.poll()
        shared = mapped_files(descendants())
        program.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            program.wait(SHUTDOWN_S)
        time.sleep(SETTLE_S)
    except BaseException:  # this process is to end: the program may tidy up, too
        if program is not None:
            program.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                program.wait(TIDY_S)
        raise
    finally:
        left_behind = descendants()
        shared |= mapped_files(left_behind)
        kill_descendants()
        for path in shared:
            path.unlink(missing_ok=True)
    return Ran(started, stopped, len(left_behind), status)


def kill_descendants() -> None:
    while pids := descendants():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def descendants() -> set[int]:
    """Process ids of the living descendants of this process."""
    return alive_below(os.getpid())


def mapped_files(pids: set[int]) -> set[Path]:
    files: set[Path] = set()
    for pid in pids:
        with suppress(OSError):
            files.update(map(Path, MAPPED_FILE.findall(Path(f"/proc/{pid}/maps").read_text())))
    return files
