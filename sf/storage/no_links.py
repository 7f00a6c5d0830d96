"""Files of a run, and those beside it, that are no links: one in the place of a file could have anything written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def open_to_append(path: Path) -> BinaryIO:
    """Unbuffered. Raises OSError, also where it is a link."""
    return open(path, "ab", buffering=0, opener=_opener)


def append_whole(file: BinaryIO, data: bytes) -> None:
    """Append all of `data` to a file of `open_to_append`, or nothing. Raises OSError."""
    size = os.fstat(file.fileno()).st_size
    try:
        while data:
            data = data[file.write(data) :]  # a disk that gets full takes a part first
    except OSError:
        file.truncate(size)
        raise


def require_file(path: Path) -> None:
    """Raises ValueError where it is a link. It need not exist."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link, and only a file that you name is written through one: remove the link")


def require_none(directory: Path) -> None:
    """Raises ValueError where a file in the directory is a link. Links to directories are fine.

    The directory need not exist.
    """
    if directory.is_dir():
        for path in directory.iterdir():
            if path.is_symlink() and not path.is_dir():
                raise ValueError(
                    f"{path} is a link, and a run writes through none: remove it, or name another --experiment"
                )


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
