"""Drawing without a screen, as for a video."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_SDL_DRIVERS = ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER")


@contextmanager
def without_window() -> Iterator[None]:
    """SDL, which pygame draws with, looks for no screen and no sound inside, and so complains of none."""
    added = [name for name in _SDL_DRIVERS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "dummy"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
