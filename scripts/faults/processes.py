"""The processes below another one, from /proc, and what they leave in /dev/shm."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CHILD = re.compile(r"(?:rollout|policy|player|learner|evaluator)-\d+")
_SHARED = re.compile(r" (/dev/shm/\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    name: str  # as `ps` shows it; a child of a run is called rollout-0, policy-0, learner-0, ...
    is_zombie: bool


def below(pid: int) -> list[Process]:
    """The descendants of a process, itself not included."""
    by_parent: dict[int, list[Process]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            head, _, tail = stat.read_text().rpartition(")")
            state, parent = tail.split()[:2]
            process = Process(int(stat.parent.name), int(parent), head.partition("(")[2], state in "ZX")
            by_parent.setdefault(process.parent, []).append(process)
    found, frontier = [], [pid]
    while frontier:
        children = by_parent.get(frontier.pop(), [])
        found += children
        frontier += [child.pid for child in children]
    return found


def alive_below(pid: int) -> set[int]:
    return {process.pid for process in below(pid) if not process.is_zombie}


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_until_gone(pids: set[int], timeout_s: float) -> set[int]:
    """Those that are still alive by then; one that nobody has waited for yet is dead."""
    give_up_at = time.monotonic() + timeout_s
    while (left := {pid for pid in pids if is_alive(pid)}) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    return left


def children_of_run(parent: int) -> list[Process]:
    return [process for process in below(parent) if _CHILD.fullmatch(process.name) and not process.is_zombie]


def helper(parent: int, module: str) -> int | None:
    """The process that multiprocessing started for the run beside its children, which names `module` when it starts.

    Of a fork server that is any module which it imports for its children.
    """
    for process in below(parent):
        if process.parent == parent and not _CHILD.fullmatch(process.name) and not process.is_zombie:
            with suppress(OSError):
                if module in Path(f"/proc/{process.pid}/cmdline").read_text():
                    return process.pid
    return None


def doom_engines(parent: int) -> list[int]:
    return [process.pid for process in below(parent) if process.name == "vizdoom" and not process.is_zombie]


def gradient_workers(parent: int) -> list[int]:
    return [each.pid for each in below(parent) if each.name.startswith("gradients-") and not each.is_zombie]


def orphaned_memory(before: set[Path]) -> set[Path]:
    """Files in /dev/shm that were not there before, and that no living process has mapped."""
    new = set(Path("/dev/shm").iterdir()) - before
    if new:
        for maps in Path("/proc").glob("[0-9]*/maps"):
            with suppress(OSError):
                new -= set(map(Path, _SHARED.findall(maps.read_text())))
    return {path for path in new if path.exists()}
