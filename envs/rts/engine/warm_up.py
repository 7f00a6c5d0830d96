"""Compiles the engine once, by whoever comes first: the others wait for that, and load what is left on disk."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

from sf.envs.rts.engine import compiled
from sf.envs.rts.engine.planes import WALLS
from sf.envs.rts.engine.state import allocate
from sf.envs.rts.engine.units import table


@cache
def warm_up() -> None:
    """Takes half a minute where the engine is new, and a second otherwise. The lock ends with the process."""
    worlds = allocate(1, table())
    nothing = np.zeros((1, 0, 1), np.int64)
    plane_of = np.full((3, len(worlds.kinds)), -1, np.int64)
    with _alone():
        compiled.advance(worlds, np.zeros(1, np.int64), 0, 0, nothing, False, 0, np.zeros((1, 2)))
        planes = np.zeros((1, 1, WALLS, 20, 20), np.int8)
        compiled.observe(worlds, 1, plane_of, planes, np.zeros((1, 1, 0), np.int8))


@contextmanager
def _alone() -> Iterator[None]:
    """One process of the user at a time. Where the user's cache cannot be written, each compiles for itself."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sf"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "rts.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except (OSError, RuntimeError):  # RuntimeError: this user has no home
        yield
        return
    try:
        with suppress(OSError):  # a disk without locks, as some of networks are
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
