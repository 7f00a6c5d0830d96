"""Remarks: sentences about an environment that the user should know, and that stop nothing.

They go to the logger `sf.envs`. Without a handler Python prints them. Worker processes take them with `handed_to`, so
that the parent says each of them once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger("sf.envs")


def remark(about: str, sentence: str) -> None:
    """about: what tells this remark from others. Remarks with the same `about` need to be said only once."""
    _LOGGER.warning(sentence, extra={"about": about})


@contextmanager
def handed_to(take: Callable[[str, str], None]) -> Iterator[None]:
    """Hand the remarks of this process to `take(about, sentence)` and to no other handler, once for each `about`."""
    handler = _Handler(take)
    propagated, _LOGGER.propagate = _LOGGER.propagate, False
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.propagate = propagated


class _Handler(logging.Handler):
    def __init__(self, take: Callable[[str, str], None]) -> None:
        super().__init__()
        self._take = take
        self._taken: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        about = getattr(record, "about", record.getMessage())
        if about not in self._taken:
            self._taken.add(about)
            self._take(about, record.getMessage())
