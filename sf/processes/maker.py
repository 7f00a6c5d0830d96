"""The process that makes a program beside one that goes on without it meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import torch

from sf.native import programs
from sf.processes.child import die_with_creator, set_name

BEGINS_AFTER_S = 60.0  # a run that is shorter has nothing of it
_NICENESS = 5


class Maker:
    """A copy of this process, which shares its memory, and dies with it."""

    def __init__(self, make: Callable[[], None], path: Path) -> None:
        """make: makes the program that lies at `path` then."""
        self._path = path
        self._reader, writer = os.pipe()
        creator = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _make(make, writer, creator)
        os.close(writer)
        _lead_a_group(self._pid)

    def outcome(self) -> str | None:
        """None while it is at work; then why it failed, or nothing."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return None
        why_not = os.read(self._reader, 4096).decode()
        os.close(self._reader)
        return why_not or (f"the compiler ended with status {status}" if status else "")

    def kill(self) -> None:
        """And the compilers that it has called."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._reader)
        programs.clean_up(self._path, self._pid)


def _make(make: Callable[[], None], writer: int, creator: int) -> NoReturn:
    """Body of the process."""
    try:
        die_with_creator()
        set_name("compiler")
        _lead_a_group(0)
        os.nice(_NICENESS)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        _keep_from_semaphores()
        torch.set_num_threads(1)  # those of the creator are not there any more
        if os.getppid() == creator:
            make()
    except BaseException as error:
        first = next(iter(str(error).strip().splitlines()), "")
        os.write(writer, f"{type(error).__name__}: {first}"[:1000].encode())
    finally:
        os._exit(0)


def _keep_from_semaphores() -> None:
    """Progress bars inside of PyTorch's compiler would take one, of which a warning remains when this is killed."""
    with suppress(ImportError):
        from tqdm import tqdm  # noqa: PLC0415  not everybody has it

        tqdm.set_lock(threading.RLock())


def _lead_a_group(pid: int) -> None:
    """Done by both sides, whoever comes first."""
    with suppress(OSError):
        os.setpgid(pid, pid)
