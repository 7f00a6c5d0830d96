"""The file that a command writes its result to.

flag: the one that named the file, for the message where it cannot be written. instead: what that message tells to name,
where not another of that flag. is_named: whether the user named the file itself. Then a link is followed. Elsewhere, as
in a run directory of somebody else, it could lead anywhere, and is refused.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sf.storage import text_files
from sf.storage.run_dir import write_atomically, write_together

_MOST_LINKS = 40  # that the kernel follows


def require_writable(flag: str, path: Path, *, is_named: bool = True, instead: str | None = None) -> None:
    """Raises ValueError before the work if the file cannot be written. Makes missing directories."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not is_named:
            text_files.require_file(path)
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(path.stat().st_mode):  # unlike is_dir, stat refuses a name that no file can have
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_special(path):
            tempfile.TemporaryFile(dir=_followed(path).parent).close()
    except OSError as error:
        raise _refusal(flag, path, error, instead) from None


def write(flag: str, path: Path, data: bytes, *, is_named: bool = True, instead: str | None = None) -> None:
    """Write a file, of which readers see the old or the new one, whole. Raises ValueError where that fails."""
    if not is_named:
        text_files.require_file(path)
    try:
        if not is_named:
            write_atomically(path, data)
        elif _is_special(path):
            path.write_bytes(data)
        else:
            write_atomically(_followed(path), data)
    except OSError as error:
        raise _refusal(flag, path, error, instead) from None


def write_folder(flag: str, folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files that belong together, by name: no reader sees the last one beside others of another time."""
    for name in files:
        text_files.require_file(folder / name)
    try:
        write_together(folder, files)
    except OSError as error:
        raise _refusal(flag, folder, error, None) from None


def is_full(error: BaseException | None) -> bool:
    """Returns whether a disk, or the share of it that a user has, has no room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _followed(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve fails where links lead in a circle


def _is_special(path: Path) -> bool:
    """A pipe, a device, or what a process has open, such as /dev/stdout: a new file must not take its place."""
    if path.exists() and not path.is_file():
        return True
    for _ in range(_MOST_LINKS):
        if path.parent.resolve().parts[1:2] == ("proc",):  # leads to a file where the shell has redirected the output
            return True
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return False


def _refusal(flag: str, path: Path, error: OSError, instead: str | None) -> ValueError:
    return ValueError(f"{path} cannot be written ({error.strerror}): name {instead or f'another --{flag}'}")
