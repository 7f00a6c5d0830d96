"""The process that created this one, and with which this one ends. Quick to import: ranks call it before all else."""

from __future__ import annotations

import ctypes
import signal

CREATOR = "SF_FORK_SERVER_CREATOR"  # a variable of fork servers: the process id of the creator
_PR_SET_PDEATHSIG = 1


def die_with_creator() -> None:
    """SIGKILL this process when the process that forked it (the parent, or its fork server) dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
