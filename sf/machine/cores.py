"""The cores that a process may use: which, how many at a time, and how several runs share them."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Sequence
from pathlib import Path

from sf.machine import cgroups


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def num_usable_cores() -> int:
    """How many cores this process can keep busy: those it may run on, or fewer where a container has a CPU quota."""
    quota = cpu_quota()
    num_cores = len(usable_cores())
    return num_cores if quota is None else min(num_cores, math.ceil(quota))


def cpu_quota(mount: Path = cgroups.MOUNT, of_process: Path = cgroups.OF_PROCESS) -> float | None:
    """CPU seconds a second that the control groups of this process grant; None where nothing limits them."""
    quotas = [
        quota
        for group in cgroups.groups("cpu", mount, of_process)
        for quota in (_quota_of(group),)
        if quota is not None
    ]
    return min(quotas, default=None)


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
