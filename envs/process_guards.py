"""Guards around code that may change the process, as environments do: behind a block, all is as before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_NAMES = ("stdout", "stderr")
_replaced: list[Any] = []  # kept for good: one that shares its buffer or its descriptor with ours closes it with itself


@contextmanager
def keep_working_directory() -> Iterator[None]:
    """Restore the working directory behind the block, which environments change to load their files."""
    directory = os.open(".", os.O_PATH)
    try:
        yield
    finally:
        os.fchdir(directory)
        os.close(directory)


@contextmanager
def keep_default_dtype() -> Iterator[None]:
    """Restore torch's default dtype behind the block, which may import torch, and change it for numbers of its own."""
    before = _default_dtype()
    try:
        yield
    finally:
        if _default_dtype() is not before:
            torch = sys.modules["torch"]
            torch.set_default_dtype(before or torch.float32)


def _default_dtype() -> Any:
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_default_dtype()


@contextmanager
def keep_standard_streams() -> Iterator[None]:
    """Restore standard output and error behind the block, as far as they can still be written to, also where it raises.

    Environments replace them, to be quiet or to collect what they print. What is said after them has to be read all the
    same.
    """
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
    """Returns false for a stream that was closed, or whose buffer another one has taken (`detach`)."""
    try:
        stream.write("")
    except ValueError:
        return False
    return True
