"""A program beside a process that goes on without it meanwhile: taken where it is there, else made when it is time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import torch

from sf.system.native import programs
from sf.system.native.library import CompilerError
from sf.system.processes.child import set_name
from sf.system.processes.creator import die_with_creator

BEGINS_AFTER_S = 60.0  # a run that is shorter has nothing of it
_LOOKS_EVERY_S = 1.0  # for a program that another process makes
_NICENESS = 5


class ProgramBeside:
    """One program, and what becomes of it. Call `look` now and then. is_over: the program is taken, or given up."""

    def __init__(
        self,
        path: Path,
        make: Callable[[], torch.export.ExportedProgram],
        take: Callable[[Path], None],
        give_up: Callable[[str], None],
        begins_after_s: float,
    ) -> None:
        """path: where it lies. make: what is compiled, called in a copy of this process. take: called where the file is
        there; may raise CompilerError. give_up: called with the reason where it never will be."""
        self._path = path
        self._make = make
        self._take = take
        self._give_up = give_up
        self._begins_at = time.monotonic() + begins_after_s
        self._looks_at = 0.0
        self._maker: Maker | None = None
        self.is_over = False
        if programs.is_there(path):
            self._end("")

    def look(self) -> None:
        """Begin to make the program when it is time, and take it when it is made."""
        if self.is_over:
            return
        if self._maker is None:
            now = time.monotonic()
            if now > self._begins_at:
                self._maker = Maker(lambda: programs.make(self._make, self._path), self._path)
            elif now > self._looks_at:
                self._looks_at = now + _LOOKS_EVERY_S
                if programs.is_there(self._path):
                    self._end("")
            return
        why_not = self._maker.outcome()
        if why_not is not None:
            self._maker = None
            self._end(why_not or ("" if programs.is_there(self._path) else "no file was made"))

    def discard(self) -> None:
        """Remove the file of a program that was made of other code, or is damaged: the next run makes it anew."""
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._maker is not None:
            self._maker.kill()

    def _end(self, why_not: str) -> None:
        self.is_over = True
        try:
            if not why_not:
                self._take(self._path)
        except CompilerError as error:
            why_not = str(error)
            self.discard()
        if why_not:
            self._give_up(why_not)


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
