"""Whether a file is there that a user names, or in a directory that a user names."""

from __future__ import annotations

from pathlib import Path

from sf.envs.errors import UsageError


def is_file(path: Path) -> bool:
    """Raises UsageError where nobody can say: in a directory that may not be entered, for a name that is too long."""
    try:
        return path.is_file()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another, or get access to it") from None
