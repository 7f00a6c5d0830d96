"""The limits that a container or a batch system has put on this process: files of its control groups.

Both versions of the kernel's interface are read. The limit of every group on the way to the root counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
OF_PROCESS = Path("/proc/self/cgroup")


def groups(controller: str, mount: Path = MOUNT, of_process: Path = OF_PROCESS) -> Iterator[Path]:
    """Directories of the groups of this process, from its own to the root, of version 2 and of version 1.

    controller: cpu or memory. In a container a directory may be missing: its groups are mounted as the root there.
    """
    try:
        lines = of_process.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            yield from _up_to(mount, group)
        elif controller in controllers.split(","):
            yield from _up_to(mount / controller, group)


def number(path: Path) -> int | None:
    """The number in a file; None where there is no such file, or no limit."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _up_to(root: Path, group: str) -> Iterator[Path]:
    parts = [part for part in group.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        yield root.joinpath(*parts[:count])
