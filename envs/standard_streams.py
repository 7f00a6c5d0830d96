"""Standard output and error, around code that may put others in their place: environments do, to be quiet or to collect
what they print. What is said after them has to be read all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Behind the block they are those before it, also where the block raises."""
    before = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
