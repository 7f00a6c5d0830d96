"""How a run is asked to stop: signals on the parent's side, a shared flag on the learner's."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection

import numpy as np

from sf.system.arrays import Field, SharedArrays

_HANG_UP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # which Windows has not
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if _HANG_UP is None else [_HANG_UP]))
_ONE_PRESS_S = 1.0  # launchers such as make and timeout pass on a signal that the terminal has sent to all as well


class StopFlag:
    """Set by the parent, or by a learner that has heard of it from another rank. The learner looks at it before each
    minibatch, ahead of the data that still waits."""

    def __init__(self) -> None:
        self._arrays = SharedArrays([Field(name, (1,), np.bool_) for name in ("stop", "by_signal", "after_failure")])

    def set(self, by_signal: bool = False, after_failure: bool = False) -> None:
        """by_signal: a signal asks for the stop. after_failure: the run cannot go on. Both stay so."""
        self._arrays["by_signal"][0] |= by_signal
        self._arrays["after_failure"][0] |= after_failure
        self._arrays["stop"][0] = True

    def is_by_signal(self) -> bool:
        return bool(self._arrays["by_signal"][0])

    def is_after_failure(self) -> bool:
        return bool(self._arrays["after_failure"][0])

    def is_set(self) -> bool:
        return bool(self._arrays["stop"][0])


class Signals:
    """`STOP_SIGNALS` as something to wait for. second_interrupts: a second one raises KeyboardInterrupt."""

    def __init__(self, second_interrupts: bool = False) -> None:
        self._second_interrupts = second_interrupts
        self.first: int | None = None  # number of the first signal
        self.is_urgent = False  # there was a second one
        self._first_at = 0.0
        self._reader, self._writer = connection.Pipe(duplex=False)
        self.wakeup = self._reader

    def handle(self, signum: int, _frame: object) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first, self._first_at = signum, now
        elif now - self._first_at > _ONE_PRESS_S:
            self.is_urgent = True
        self._writer.send_bytes(b"")
        if self.is_urgent and self._second_interrupts:
            self._second_interrupts = False  # saving, which follows, is not broken off
            raise KeyboardInterrupt

    def clear_wakeup(self) -> None:
        while self._reader.poll():
            self._reader.recv_bytes()


@contextmanager
def caught_signals(second_interrupts: bool = False) -> Iterator[Signals]:
    """`STOP_SIGNALS` are only noted while this is open, see `Signals`. SIGHUP stays ignored after nohup."""
    signals = Signals(second_interrupts)
    caught = [s for s in STOP_SIGNALS if s != _HANG_UP or signal.getsignal(s) != signal.SIG_IGN]
    before = {signum: signal.signal(signum, signals.handle) for signum in caught}
    try:
        yield signals
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit while this is open, as Ctrl-C raises KeyboardInterrupt. By themselves they
    would leave undone what is done at the end. Where one is ignored or handled, it stays so."""
    raised = [s for s in STOP_SIGNALS[1:] if signal.getsignal(s) == signal.SIG_DFL]
    for signum in raised:
        signal.signal(signum, _raise)
    try:
        yield
    finally:
        for signum in raised:
            signal.signal(signum, signal.SIG_DFL)


def _raise(signum: int, _frame: object) -> None:
    raise SystemExit(128 + signum)


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the process at once while this is open, whatever code runs: not only what heeds KeyboardInterrupt.

    Where it is ignored, as in the background of a shell, it stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
