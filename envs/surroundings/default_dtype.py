"""Torch's default dtype, around code that may change it: environments in torch do, for numbers of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _get() -> Any:
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_default_dtype()


@contextmanager
def kept() -> Iterator[None]:
    """Behind the block it is the one before it, also where the block raises or has imported torch."""
    before = _get()
    try:
        yield
    finally:
        if _get() is not before:
            torch = sys.modules["torch"]
            torch.set_default_dtype(before or torch.float32)
