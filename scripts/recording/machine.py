"""Describes the machine and the commit that something was measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal


def cpu() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def commit() -> str:
    """Returns the short hash of the commit, with -dirty where files have changed since; empty without git."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()


def describe(device: Literal["cpu", "cuda"]) -> dict[str, Any]:
    """Returns the facts that a comparison of trainers records."""
    from sf.system import gpu  # noqa: PLC0415  torch is slow to import

    return {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "gpus": gpu.names() if device == "cuda" else [],
        "load_average_before": os.getloadavg(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "vizdoom": version("vizdoom"),
        "commit": commit(),
    }
