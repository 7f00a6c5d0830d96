"""The cores that a process may use: which, how many at a time, how runs share them, and where workers are pinned.

Runs know of each other by names of sockets: a run that pins a worker to core 3 takes the first free one of
`sf-core/3/0`, `sf-core/3/1` and so on. The kernel frees a name with the process that took it, however that ends; a name
is no file, so nothing is left behind, and nobody can connect to it. A container with a network of its own sees its own
runs alone.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import random
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from sf.system.machine import cgroups
from sf.system.portable import usable_cores


def num_usable_cores() -> int:
    """How many cores this process can keep busy: those it may run on, or fewer where a container has a CPU quota."""
    quota = cpu_quota()
    num_cores = len(usable_cores())
    return num_cores if quota is None else min(num_cores, math.ceil(quota))


def cpu_quota(mount: Path = cgroups.MOUNT, of_process: Path = cgroups.OF_PROCESS) -> float | None:
    """CPU seconds a second that the control groups of this process grant; None where nothing limits them."""
    quotas = map(_quota_of, cgroups.groups("cpu", mount, of_process))
    return min((quota for quota in quotas if quota is not None), default=None)


def shares(cores: Sequence[int], num_shares: int, num_usable: int) -> list[tuple[int, ...]]:
    """Share out `cores` as evenly as possible: disjoint shares, unless there are more shares than cores.

    num_usable: how many can be busy at a time. Where that is fewer, a share has its part of that number, drawn from its
    cores: containers side by side shall not all take the first ones.
    """
    if num_shares > len(cores):
        return [(cores[idx % len(cores)],) for idx in range(num_shares)]
    bounds = [idx * len(cores) // num_shares for idx in range(num_shares + 1)]
    disjoint = [tuple(cores[begin:end]) for begin, end in itertools.pairwise(bounds)]
    if num_usable >= len(cores):
        return disjoint
    num_each = max(1, num_usable // num_shares)
    return [tuple(sorted(random.sample(share, min(num_each, len(share))))) for share in disjoint]


def _quota_of(group: Path) -> float | None:
    try:
        limit, period = (group / "cpu.max").read_text().split()  # version 2
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    limit_us, period_us = cgroups.number(group / "cpu.cfs_quota_us"), cgroups.number(group / "cpu.cfs_period_us")
    return limit_us / period_us if limit_us and period_us and limit_us > 0 else None


_NAMES = Path("/proc/net/unix")


class PinnedCores:
    """Of each worker its core, chosen once: a run does not move later."""

    def __init__(self, cores: Sequence[int], num_workers: int, prefix: str = "sf-core") -> None:
        """cores: that the workers may use. prefix: of the names, which tests have of their own."""
        self._names: list[int] = []  # descriptors of the sockets that hold them
        self._prefix = prefix
        self._of_worker = self._choose(cores, num_workers)

    def __del__(self) -> None:
        self.release()

    def of(self, worker_idx: int) -> int | None:
        """The core of a worker, None where workers are not pinned."""
        return self._of_worker[worker_idx]

    def release(self) -> None:
        """The run has ended: others may count on its cores."""
        while self._names:
            os.close(self._names.pop())

    @classmethod
    def nowhere(cls, num_workers: int) -> PinnedCores:
        """The workers run where the kernel lets them."""
        pinned = cls((), 0)
        pinned._of_worker = [None] * num_workers
        return pinned

    def _choose(self, cores: Sequence[int], num_workers: int) -> list[int | None]:
        taken = self._taken_names()
        chosen: list[int | None] = []
        for _ in range(num_workers):
            while True:
                core = min(cores, key=lambda core: len(taken.get(core, ())))
                numbers = taken.setdefault(core, set())
                number = next(number for number in range(len(numbers) + 1) if number not in numbers)
                numbers.add(number)
                if self._take(f"{self._prefix}/{core}/{number}"):
                    break  # else another run was faster: look again for the least used
            chosen.append(core)
        return chosen

    def _take(self, name: str) -> bool:
        """Take a name; False where another process has it. Where names cannot be taken at all, nobody has it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
            try:
                holder.bind(b"\0" + name.encode())
            except OSError as error:
                return error.errno != errno.EADDRINUSE
            self._names.append(holder.detach())
            return True

    def _taken_names(self) -> dict[int, set[int]]:
        """Numbers of the names that are taken, by core; none where the kernel does not tell."""
        try:
            lines = _NAMES.read_text(errors="replace").splitlines()
        except OSError:
            return {}
        taken: dict[int, set[int]] = {}
        for line in lines:
            name = re.search(rf"@{re.escape(self._prefix)}/(\d+)/(\d+)$", line)
            if name is not None:
                taken.setdefault(int(name[1]), set()).add(int(name[2]))
        return taken
