"""One run for each directory: a lock that ends with its process, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class HeldError(ValueError):
    """Another process has the lock."""


@contextmanager
def held(directory: Path, say: Callable[[str], None] = print, flag: str | None = None) -> Iterator[None]:
    """Hold the lock of a directory that need not exist yet.

    The file `.NAME.lock` is beside the directory, so it stays when the directory is moved away or removed. The kernel
    frees the lock when the process ends; children inherit no descriptor and so do not hold it. Raises ValueError where
    another process has the lock or the file cannot be made. `say` is told where the file system has no locks.

    flag: that names the directory; None: it is that of a run.
    """
    target = Path(os.path.realpath(directory))  # Path.resolve fails where links lead in a circle
    path = target.with_name(f".{target.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path} is a link instead of the lock of a run: remove it") from None
        raise ValueError(f"{path}: {error.strerror}: name another --{flag or 'train_dir'}") from None
    try:
        _lock(fd, directory, say, flag)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, directory: Path, say: Callable[[str], None], flag: str | None) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(fd, 200).decode(errors="replace") or "another process"
        if flag is not None:
            raise HeldError(f"{holder} writes to {directory}: wait for its end, or name another --{flag}") from None
        raise HeldError(
            f"{holder} is running in {directory}: wait for its end, stop it, or name another --experiment"
        ) from None
    except OSError as error:
        say(f"{directory} cannot be locked ({error.strerror}): make sure that no second run starts there")
        return
    with suppress(OSError):  # a full disk: the message above says "another process" then
        os.ftruncate(fd, 0)
        os.write(fd, f"process {os.getpid()} on {socket.gethostname()}".encode())
