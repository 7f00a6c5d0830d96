"""Where a run is written, and where ViZDoom keeps its shared memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sf.check.probe import Needs, ProbeError
from sf.storage.run_dir import write_atomically

_SHM = Path("/dev/shm")
_ENOUGH_ON_DISK = 1 << 30
_ENGINE_BYTES = 128 << 10  # of /dev/shm, a Doom engine


def writing(needs: Needs) -> str:
    """A file is replaced at once, as the trainer replaces checkpoints and summaries."""
    with _folder(needs.train_dir) as folder:
        path = folder / "checkpoint"
        for text in (b"old", b"new"):
            write_atomically(path, text)
            if path.read_bytes() != text:
                raise ProbeError(f"{folder.parent} gives back other bytes than were written")
        free = shutil.disk_usage(folder).free
        if free < _ENOUGH_ON_DISK:
            raise ProbeError(f"{folder.parent} has {free / 2**30:.1f} GiB left")
        return f"{folder.parent}: files are replaced whole, {free / 2**30:.0f} GiB are free"


def shm(needs: Needs) -> str:
    """Room for ViZDoom's shared memory. The trainer's own has no name, and so takes none of it."""
    usage = shutil.disk_usage(_SHM)
    wanted = _ENGINE_BYTES * needs.num_envs
    if usage.free < wanted:
        raise ProbeError(f"{usage.free >> 10} KiB are free, and {needs.num_envs} Doom engines take {wanted >> 10}")
    with tempfile.TemporaryFile(dir=_SHM) as file:
        file.write(bytes(min(wanted, 1 << 20)))
        file.flush()
    return f"{usage.free / 2**20:,.0f} of {usage.total / 2**20:,.0f} MiB are free"


@contextmanager
def _folder(train_dir: str) -> Iterator[Path]:
    """A folder for a moment: in train_dir, or where that would be made."""
    place = Path(train_dir).absolute()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise ProbeError(f"{place} cannot be written")
    with tempfile.TemporaryDirectory(prefix=".sf-check-", dir=place) as folder:
        yield Path(folder)
