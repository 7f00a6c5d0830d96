"""What is worth knowing of an environment and stops nothing: a sentence for the logger `sf.envs`.

Without a handler Python prints it. Whoever has many processes takes it with `handed_to` and says it once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger("sf.envs")


def remark(about: str, sentence: str) -> None:
    """about: remarks about the same need to be said once."""
    _LOGGER.warning(sentence, extra={"about": about})


@contextmanager
def handed_to(take: Callable[[str, str], None]) -> Iterator[None]:
    """All remarks of this process, as `take(about, sentence)`, those about the same once, and to nobody else."""
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
