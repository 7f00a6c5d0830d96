"""Ctrl-C in a command that shows something: what is under way is finished first."""

from __future__ import annotations

import signal
from typing import Any


class GentleInterrupt:
    """Within it, Ctrl-C ends the play after the step and the picture that are under way, so that a video is finished;
    a second one ends at once. Before it, while nothing is played yet, the first one does.

    SIGTERM does the same. number: of the signal that came, or 0.
    """

    def __init__(self) -> None:
        self.number = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> GentleInterrupt:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        self.number = number
        self.__exit__()
