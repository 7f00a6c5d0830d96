"""Compiles the engine once, whoever comes first: the others wait for it, and load what it has left on disk."""

from __future__ import annotations

import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path


@cache
def warm_up() -> None:
    """Takes half a minute when the engine is new on this machine, and a second otherwise."""
    path = Path(tempfile.gettempdir()) / f"sf-rts-{os.getuid()}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        import numpy as np  # noqa: PLC0415

        from sf.envs.rts.controls import controls  # noqa: PLC0415
        from sf.envs.rts.games import Games  # noqa: PLC0415  after the lock
        from sf.envs.rts.settings import Settings  # noqa: PLC0415

        settings = Settings()
        games = Games(settings, [1])
        games.begin(np.ones(1, bool))
        planes = len(controls(settings).plane_names)
        games.observe(
            controls(settings).plane_of, np.zeros((1, 1, planes, 20, 20), np.float32), np.zeros((1, 1, 0), np.int8)
        )
