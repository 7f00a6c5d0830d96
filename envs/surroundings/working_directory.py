"""The working directory, around code that may change it: environments do, to load their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Behind the block the working directory is the one before it, also where the block raises or has moved it."""
    directory = os.open(".", os.O_PATH)
    try:
        yield
    finally:
        os.fchdir(directory)
        os.close(directory)
