"""Standard output and error, around code that may put others in their place: environments do, to be quiet or to collect
what they print. What is said after them has to be read all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_NAMES = ("stdout", "stderr")
_replaced: list[Any] = []  # kept for good: one that shares its buffer or its descriptor with ours closes it with itself


@contextmanager
def kept() -> Iterator[None]:
    """Behind the block they are those before it, as far as these can still be written to, also where it raises."""
    before = {name: getattr(sys, name) for name in _NAMES}
    try:
        yield
    finally:
        for name, stream in before.items():
            other = getattr(sys, name)
            if other is stream:
                continue
            _replaced.append(other)
            with suppress(Exception):  # it is of any kind
                other.flush()
            if _can_be_written_to(stream):
                setattr(sys, name, stream)


def _can_be_written_to(stream: Any) -> bool:
    """Not one that was closed, or whose buffer another one has taken (`detach`)."""
    try:
        stream.write("")
    except ValueError:
        return False
    return True
