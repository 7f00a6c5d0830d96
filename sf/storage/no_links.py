"""Files of a run that are no links: a link in the place of one could make the run write anywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def open_to_append(path: Path) -> BinaryIO:
    """Unbuffered. Raises OSError, also where it is a link."""
    return open(path, "ab", buffering=0, opener=_opener)


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
