"""The lock of the machine: one bench at a time, since two would slow each other down."""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The kernel frees it when the process ends. Children inherit no descriptor and so do not hold it.

    Raises ValueError where another process has it, or the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ValueError(f"{path} cannot be locked ({error.strerror}): name another --lock") from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 1000).decode(errors="replace") or "another process"
            raise ValueError(f"{holder} has the machine: wait for its end, or stop it") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()} ({shlex.join(sys.argv)}, in {Path.cwd()})".encode(), 0)
        yield
    finally:
        os.close(fd)
