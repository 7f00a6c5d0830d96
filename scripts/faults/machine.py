"""What a campaign asks of the machine: processes and shared memory of its own, permissions that bind, and patience.

A shard takes these for itself and for every run that it starts; other programs notice nothing.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 0x4000, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Whatever outlives its run becomes a child of this process instead of init, also in a session of its own."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def obey_permissions() -> None:
    """What root starts from here on writes only where the permissions say so, where that can be arranged."""
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def permissions_bind() -> bool:
    """Not what root starts with all its capabilities."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o500)
        return subprocess.run(["test", "-w", directory], check=False).returncode != 0


def have_own_shared_memory() -> bool:
    """Give this process, and what it starts, a /dev/shm that no other program uses; False where that is not allowed."""
    if _LIBC.unshare(_CLONE_NEWNS) != 0:
        return False
    if _LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return False
    return _LIBC.mount(b"tmpfs", bytes(SHARED_MEMORY), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777,size=1g") == 0


def shared_memory() -> set[Path]:
    return set(SHARED_MEMORY.iterdir())


def patience(seconds: float) -> float:
    """A limit of time that holds where two processes share a core, longer by as much as the machine is busier."""
    return seconds * max(1.0, os.getloadavg()[0] / (2 * len(os.sched_getaffinity(0))))
