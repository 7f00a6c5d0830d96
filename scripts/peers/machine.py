"""Describes the machine that a comparison was made on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from peers.options import REPOSITORY

from sf.system import gpu


def describe(device: Literal["cpu", "cuda"]) -> dict[str, Any]:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude=*"]
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "gpus": gpu.names() if device == "cuda" else [],
        "load_average_before": os.getloadavg(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "vizdoom": version("vizdoom"),
        "commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(),
    }
