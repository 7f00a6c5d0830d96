"""How busy the GPU is and who has its memory, by nvidia-smi; nothing where that is missing."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

_EVERY_S = 2.0
_ROLE = re.compile(r"(rollout|policy|learner|evaluator)-\d+")


class GpuMonitor:
    """Looks from time to time while it is open."""

    def __init__(self) -> None:
        self._busy: list[float] = []  # of each look, the mean over the GPUs, from 0 to 1
        self._used: list[float] = []  # MiB of all GPUs
        self._by_role: defaultdict[str, float] = defaultdict(float)  # MiB of one process at most
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> GpuMonitor:
        if shutil.which("nvidia-smi"):
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def result(self) -> dict[str, Any]:
        """gpu_busy: share of the time with a kernel on it, over the second half, when start-up is over."""
        if not self._busy:
            return {"gpu_busy": None, "gpu_mib": None, "gpu_mib_by_role": {}}
        return {
            "gpu_busy": statistics.mean(self._busy[len(self._busy) // 2 :]),
            "gpu_mib": max(self._used),
            "gpu_mib_by_role": dict(self._by_role),
        }

    def _watch(self) -> None:
        while not self._end.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        looks = [(float(busy) / 100, float(used)) for busy, used in _ask("gpu=utilization.gpu,memory.used")]
        if looks:
            self._busy.append(statistics.mean(busy for busy, _ in looks))
            self._used.append(sum(used for _, used in looks))
        for pid, used in _ask("compute-apps=pid,used_memory"):
            role = _role(pid)
            self._by_role[role] = max(self._by_role[role], float(used))


def used_mib() -> float | None:
    """MiB of all GPUs in use, by whomever; None where nobody can tell."""
    looks = _ask("gpu=memory.used") if shutil.which("nvidia-smi") else []
    return sum(float(used) for (used,) in looks) if looks else None


def as_text(result: dict[str, Any]) -> str:
    if result["gpu_busy"] is None:
        return "GPU not watched (no nvidia-smi)"
    roles = ", ".join(f"{role} {mib:,.0f}" for role, mib in sorted(result["gpu_mib_by_role"].items()))
    return (
        f"GPU busy {100 * result['gpu_busy']:.0f} %, {result['gpu_mib']:,.0f} MiB at most ({roles or 'by nobody seen'})"
    )


def _ask(query: str) -> list[tuple[str, ...]]:
    """The rows of an answer whose values are all numbers."""
    command = ["nvidia-smi", f"--query-{query}", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        rows = [tuple(value.strip() for value in line.split(",")) for line in said.splitlines()]
        return [row for row in rows if all(value.replace(".", "", 1).isdigit() for value in row)]
    return []


def _role(pid: str) -> str:
    """Of a process of a run; in a container nvidia-smi may speak of others' numbers."""
    with suppress(OSError):
        name = _ROLE.fullmatch(Path(f"/proc/{pid}/comm").read_text().strip())
        return name[1] if name else "other"
    return "other"
