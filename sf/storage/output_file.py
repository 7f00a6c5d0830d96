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
from pathlib import Path

from sf.storage import no_links
from sf.storage.run_dir import write_atomically


def require_writable(flag: str, path: Path, *, is_named: bool = True, instead: str | None = None) -> None:
    """Before the work: raises ValueError where the file cannot be written. Makes missing directories."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not is_named:
            no_links.require_file(path)
        if _is_directory(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target = path if path.exists() else path.resolve()  # of a link to a file that is not there yet
        if not _is_special(target):
            tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise _refusal(flag, path, error, instead) from None


def write(flag: str, path: Path, data: bytes, *, is_named: bool = True, instead: str | None = None) -> None:
    """Readers see the old file or the new one, whole, also after a crash.

    Raises ValueError where it cannot be written.
    """
    if not is_named:
        no_links.require_file(path)
    try:
        if is_named and _is_special(path):
            path.write_bytes(data)
        else:
            write_atomically(path, data)
    except OSError as error:
        raise _refusal(flag, path, error, instead) from None


def _is_directory(path: Path) -> bool:
    """Raises OSError for a name that no file can have."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _is_special(path: Path) -> bool:
    """A link, a pipe or a device such as /dev/stdout: a new file must not take its place."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _refusal(flag: str, path: Path, error: OSError, instead: str | None) -> ValueError:
    return ValueError(f"{path} cannot be written ({error.strerror}): name {instead or f'another --{flag}'}")
