"""Replaces, on other systems, what a serial run needs and only Linux has.

macOS and Windows train in one process alone (`--serial true`), which needs no more than this.
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from typing import Any


def _module(name: str) -> Any:
    """The module, or None where the system has none of this name."""
    with suppress(ImportError):
        return importlib.import_module(name)
    return None


fcntl = _module("fcntl")
resource = _module("resource")

O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""Follow no link. 0 where links cannot be told apart while a file is opened."""


def usable_cores() -> tuple[int, ...]:
    """Returns the cores that this process may run on; all of them where the system cannot confine it to some."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def user_id() -> int | None:
    """Returns the number of the user, or None where users have none."""
    return os.getuid() if hasattr(os, "getuid") else None
