"""Ends all engines of a network game when one of them dies or hangs: the others would wait for it for ever."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

PATIENCE_MS = 10_000  # a step of a match takes a millisecond, the start of an episode some 20


class Watchdog:
    """A thread that watches the engines of one network game. The game is stepped inside of `with watchdog:`.

    An engine that waits for a packet of another one never returns to us, and nothing but a signal ends it. So when an
    engine is dead, or a step has not ended when the thread has looked at it twice, `PATIENCE_MS` apart, it kills all of
    them, and ViZDoom raises in the thread that steps. It counts looks, not seconds: so a process that was stopped and
    continued is not taken for one that hangs.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        """pids: of the engines."""
        self._pidfds = [os.pidfd_open(pid) for pid in pids]
        self._stop_fd = os.eventfd(0)
        self._turn = 0  # odd in a step
        self._thread = threading.Thread(target=self._watch, name="doom-watchdog", daemon=True)
        self._thread.start()

    def __enter__(self) -> None:
        self._turn += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._turn += 1

    def close(self) -> None:
        """Kill the engines, and end the thread."""
        os.eventfd_write(self._stop_fd, 1)
        self._thread.join()
        self._kill()
        for fd in (self._stop_fd, *self._pidfds):
            os.close(fd)

    def _watch(self) -> None:
        poll = select.poll()
        for fd in (self._stop_fd, *self._pidfds):
            poll.register(fd, select.POLLIN)
        seen = 0
        while not poll.poll(PATIENCE_MS):  # nobody died, nobody closes
            if self._turn == seen and seen % 2 == 1:
                break
            seen = self._turn
        self._kill()

    def _kill(self) -> None:
        for pidfd in self._pidfds:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
