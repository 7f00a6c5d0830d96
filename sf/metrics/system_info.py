"""system.json: the machine and the versions of a run, with an entry for each start."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from sf.storage import text_files
from sf.storage.run_dir import RunDir, write_atomically
from sf.system.machine.cores import num_usable_cores

_PACKAGES = ("sf-appo", "torch", "numpy", "gymnasium", "vizdoom", "ale-py", "pettingzoo", "open-spiel")
_GIT_TIMEOUT_S = 5.0


def record_start(run_dir: RunDir) -> None:
    """Add an entry for this start. Raises ValueError where the directory cannot be written."""
    entries = [*read_starts(run_dir), system_info()]
    with run_dir.refused_if_unwritable():
        write_atomically(run_dir.system, (text_files.dumps(entries, indent=2) + "\n").encode())


def read_starts(run_dir: RunDir) -> list[dict[str, Any]]:
    """The entries of all starts, the latest last; none where the file is missing or damaged."""
    try:
        entries = json.loads(run_dir.system.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def system_info() -> dict[str, Any]:
    """Returns what the speed and the numbers of a run depend on besides its configuration. Memory in GiB."""
    return {
        "started_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "host": socket.gethostname(),
        "os": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": num_usable_cores(),
        "memory_gib": _memory_gib(),
        **_gpus(),
        "python": platform.python_version(),
        "versions": {package: version for package in _PACKAGES if (version := _version(package))},
        "commit": commit_of(Path(__file__)),
    }


def commit_of(source: Path) -> str | None:
    """The git commit of a source file, with "-dirty" where tracked files differ from it; None for an installed one.

    Only a file that git tracks counts, since a virtual environment may be inside of another repository.
    """
    if _git(source.parent, "ls-files", "--error-unmatch", source.name) is None:
        return None
    return _git(source.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},  # take no lock, which would disturb whoever works there
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _memory_gib() -> float | None:
    """Returns None where the system does not tell, as on Windows."""
    if not hasattr(os, "sysconf"):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _cpu_model() -> str:
    """Returns its name where the kernel tells it (x86), else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpus() -> dict[str, Any]:
    import torch  # noqa: PLC0415  slow, and who only reads a record needs none

    from sf.system import gpu  # noqa: PLC0415

    return {"gpus": gpu.names(), "cuda": torch.version.cuda}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
