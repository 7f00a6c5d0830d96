"""The jobs of a sweep, as they are remembered from one start of the command to the next."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sf.storage.run_dir import write_atomically


@dataclass
class Job:
    """job_id: SLURM's. folder: what submitit has written for it. num_lost: jobs of this run that the cluster lost."""

    job_id: str
    folder: Path
    num_lost: int = 0
    state: str = field(default="PENDING", compare=False)


def read_jobs(path: Path) -> dict[str, Job]:
    """By the name of the run. A file that is not there, or not of this kind, counts as empty."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    rows = found if isinstance(found, list) else []
    return {row["run"]: Job(row["job"], path.parent / row["folder"], row["lost"]) for row in rows if _is_job(row)}


def write_jobs(path: Path, jobs: Mapping[str, Job]) -> None:
    rows = [
        {"run": name, "job": job.job_id, "folder": job.folder.name, "lost": job.num_lost} for name, job in jobs.items()
    ]
    write_atomically(path, (json.dumps(rows, indent=1) + "\n").encode())


def _is_job(row: object) -> bool:
    """Job ids become words of a command line, and folders parts of a path."""
    return (
        isinstance(row, dict)
        and isinstance(row.get("run"), str)
        and isinstance(row.get("job"), str)
        and re.fullmatch(r"[0-9]+", row["job"]) is not None
        and isinstance(row.get("folder"), str)
        and re.fullmatch(r"[\w-]+", row["folder"]) is not None
        and type(row.get("lost")) is int
    )
