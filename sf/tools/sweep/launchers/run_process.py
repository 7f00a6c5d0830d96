"""How the process of a run begins and ends. Every job of a cluster imports this, so it is light."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Sequence

# Statuses of a run that was: one that still starts up dies of the signal.
ASKED_TO_END = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)
_PR_SET_PDEATHSIG = 1


def begin(cores: Sequence[int] | None = None, ignored: Sequence[signal.Signals] = ()) -> None:
    """In the process of a run, before its program: keep to the cores of its place, and save when the parent dies.

    A command in the background of a script has SIGINT ignored, and what it starts would ignore it, too.

    cores: None leaves those that it was given. ignored: signals that are not for the run, nor for its own processes.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for signum in ignored:
        signal.signal(signum, signal.SIG_IGN)
    if cores is not None:
        os.sched_setaffinity(0, cores)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
