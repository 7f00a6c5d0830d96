"""Which part of a run uses the cores: CPU time of the machine, and of each role with its simulators.

Linux counts both in /proc, in clock ticks. The parent reads them for each record.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)  # of the figures of a core: idle, and idle while a disk works
_ALL = slice(0, 8)  # user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user and nice, too
_OF_PROCESS = slice(11, 15)  # of the figures after its name: user, system, and both of its children that have ended


@dataclass(frozen=True)
class CoreSeconds:
    """CPU seconds since the machine, or each process, started. Only differences between two calls are meaningful.

    of_machine: of the cores in question, by all programs. of_role: by role of the children (rollout, policy, learner).
    """

    of_machine: float
    of_role: dict[str, float]


def core_seconds(cores: tuple[int, ...], roles: tuple[str, ...]) -> CoreSeconds:
    """Until now. cores: those that count for the machine. The children of this process are named ROLE-NUMBER."""
    of_role = dict.fromkeys(roles, 0.0)
    for child in multiprocessing.active_children():
        role = child.name.partition("-")[0]
        if role in of_role and child.pid is not None:
            of_role[role] += sum(_process_seconds(pid) for pid in _with_descendants(child.pid))
    return CoreSeconds(_machine_seconds(cores), of_role)


def _machine_seconds(cores: tuple[int, ...]) -> float:
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:  # a sandbox that hides it
        return 0.0
    ticks = {line[0]: [int(figure) for figure in line[1:]] for line in lines if line[0].startswith("cpu")}
    used = (sum(ticks[f"cpu{core}"][_ALL]) - sum(ticks[f"cpu{core}"][_IDLE]) for core in cores if f"cpu{core}" in ticks)
    return sum(used) / _TICKS_PER_S


def _with_descendants(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):  # it has ended meanwhile
        for children in Path(f"/proc/{pid}/task").glob("*/children"):  # of each of its threads
            for child in children.read_text().split():
                yield from _with_descendants(int(child))


def _process_seconds(pid: int) -> float:
    with suppress(OSError):
        figures = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # a name may hold anything
        return sum(int(figure) for figure in figures[_OF_PROCESS]) / _TICKS_PER_S
    return 0.0
