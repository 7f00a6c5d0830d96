"""One run for each directory: a lock that ends with its process, however that ends."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sf.system.messages import say
from sf.system.portable import O_NOFOLLOW, fcntl


class HeldError(ValueError):
    """Another process has the lock."""


class Lock:
    """Locks a directory while it is held."""

    def __init__(self, directory: Path, flag: str | None) -> None:
        target = Path(os.path.realpath(directory))  # Path.resolve fails where links lead in a circle
        self._path = target.with_name(f".{target.name}.lock")
        self._directory = directory
        try:
            self._fd = self._open()
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ValueError(f"{self._path} is a link instead of the lock of a run: remove it") from None
            raise ValueError(f"{self._path}: {error.strerror}: name another --{flag or 'train_dir'}") from None
        holder = self._take()
        if holder is None:
            return
        self.close()
        if flag is not None:
            raise HeldError(f"{holder} writes to {directory}: wait for its end, or name another --{flag}")
        raise HeldError(f"{holder} is running in {directory}: wait for its end, stop it, or name another --experiment")

    def renew(self) -> None:
        """Take it again where somebody has removed its file, with which it keeps nobody out any more.

        Raises HeldError where another process has it by now. Where the file cannot be made, the next call tries again.
        """
        try:
            if self._is_in_place():
                return
            fd = self._open()
        except OSError:
            return
        self.close()
        self._fd = fd
        holder = self._take()
        if holder is not None:
            raise HeldError(
                f"{self._directory} was removed with its lock, and {holder} is running there now: this run ends, so "
                "start it under another --experiment"
            )

    def close(self) -> None:
        os.close(self._fd)

    def _open(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._path, os.O_RDWR | os.O_CREAT | O_NOFOLLOW, 0o666)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._path.lstat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _take(self) -> str | None:
        """The process that has it, where another one does."""
        if fcntl is None:
            say(f"{self._directory} cannot be locked on this system: make sure that no second run starts there")
            return None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(self._fd, 200).decode(errors="replace") or "another process"
        except OSError as error:
            say(f"{self._directory} cannot be locked ({error.strerror}): make sure that no second run starts there")
            return None
        with suppress(OSError):  # a full disk: a second process is told of "another process" then
            os.ftruncate(self._fd, 0)
            os.write(self._fd, f"process {os.getpid()} on {socket.gethostname()}".encode())
        return None


@contextmanager
def held(directory: Path, flag: str | None = None) -> Iterator[Lock]:
    """Hold the lock of a directory that need not exist yet.

    The file `.NAME.lock` is beside the directory, so it stays when the directory is moved away or removed. The kernel
    frees the lock when the process ends; children inherit no descriptor and so do not hold it. Raises ValueError where
    another process has the lock or the file cannot be made. Tells the user if the file system has no locks.

    flag: that names the directory; None: it is that of a run.
    """
    lock = Lock(directory, flag)
    try:
        yield lock
    finally:
        lock.close()
