"""Ctrl-C at any moment of a command, also while it imports its libraries."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType, TracebackType
from typing import Any

_AGAIN_AFTER_S = 0.05
_OF_SIGNALS = [128 + signum for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)]  # status of a command


class Interrupt:
    """Within it, Ctrl-C raises KeyboardInterrupt, and goes on doing so at each import until the command is left.

    Python drops what is raised in a callback, with a traceback on standard error. A KeyboardInterrupt that is lost so
    is raised once more, shortly after. Some libraries turn it into another error while they are imported.

    came: whether there was one.
    """

    def __init__(self) -> None:
        self.came = False
        self._is_outermost = False
        self._again: threading.Timer | None = None

    def __enter__(self) -> Interrupt:
        # Whoever has a handler of its own, or ignores the signal as nohup does, keeps it.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._raise)
            except ValueError:  # only the main thread may
                return self
            self._is_outermost = True
            self._report_dropped = sys.unraisablehook
            sys.unraisablehook = self._on_dropped
            sys.meta_path.insert(0, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_outermost:
            return
        if self._again is not None:
            self._again.cancel()
        sys.meta_path.remove(self)
        sys.unraisablehook = self._report_dropped
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Python asks for it at each import of a new module."""
        if self.came:
            raise KeyboardInterrupt

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        raise KeyboardInterrupt

    def _on_dropped(self, dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            self._report_dropped(dropped)
        else:  # once more, when Python has left the callback
            self._again = threading.Timer(_AGAIN_AFTER_S, os.kill, (os.getpid(), signal.SIGINT))
            self._again.daemon = True
            self._again.start()


@contextmanager
def keeps_the_status_of_a_signal() -> Iterator[None]:
    """For a whole program, from its start. Once a signal has ended it, another one changes no status.

    Python takes signals as the system does while it takes its modules apart, which lasts a second with torch. So that
    is left out: the process ends after all that was registered with atexit meanwhile.
    """
    status: list[int] = []

    def end() -> None:
        if status:
            _end_at_once(status[0])

    atexit.register(end)  # the first, and so called last
    try:
        yield
    except SystemExit as error:
        if error.code in _OF_SIGNALS:
            status.append(error.code)
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, partial(_end_at_once, error.code))
        raise
    finally:
        if not status:
            atexit.unregister(end)


def _end_at_once(status: int, *_of_a_handler: object) -> None:
    with suppress(OSError, ValueError, RuntimeError, AttributeError):  # it may be in the middle of that
        sys.stdout.flush()
    os._exit(status)
