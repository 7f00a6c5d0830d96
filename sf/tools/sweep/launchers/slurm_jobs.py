"""Reads the states of SLURM jobs, and keeps the jobs of a sweep from one start of the command to the next."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sf.storage.run_dir import write_atomically

QUEUED = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
CANCELLED = "CANCELLED"
FORGOTTEN = "FORGOTTEN"  # no state of SLURM's, which remembers for some minutes, and longer only with accounting
# That the run has no part in.
LOST = ("BOOT_FAIL", "LAUNCH_FAILED", "NODE_FAIL", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT", FORGOTTEN)
OVER = (*LOST, CANCELLED, "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY")


def states(ids: Sequence[str]) -> dict[str, str]:
    """The state of each job, in SLURM's words.

    Raises OSError, with what squeue says, where SLURM does not answer.
    """
    if not ids:
        return {}
    of_squeue = ["squeue", "--noheader", "--states=all", "--format=%i %T", f"--jobs={','.join(ids)}"]
    asked = subprocess.run(of_squeue, capture_output=True, text=True, check=False)
    if asked.returncode and "invalid job id" not in asked.stderr.lower():  # of all of them
        raise OSError(" ".join(asked.stderr.split()) or f"squeue ended with status {asked.returncode}")
    found = dict(line.split() for line in asked.stdout.splitlines() if len(line.split()) == 2)
    return {job_id: found.get(job_id) or _remembered(job_id) for job_id in ids}


def _remembered(job_id: str) -> str:
    """Asks the accounting of the cluster, if it has one."""
    of_sacct = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=State", f"--jobs={job_id}"]
    try:
        asked = subprocess.run(of_sacct, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return FORGOTTEN
    words = asked.stdout.split()  # CANCELLED by 1000
    return words[0] if words and words[0] in OVER else FORGOTTEN


@dataclass
class Job:
    """job_id: SLURM's. folder: what submitit has written for it. num_lost: jobs of this run that the cluster lost."""

    job_id: str
    folder: Path
    num_lost: int = 0
    state: str = field(default="PENDING", compare=False)


def read_jobs(path: Path) -> dict[str, Job]:
    """Returns the jobs by the name of the run. A file that is not there, or not of this kind, counts as empty."""
    try:
        rows = json.loads(path.read_bytes())
        folders = [path.parent / Path(row["folder"]).name for row in rows]
        return {
            row["run"]: Job(str(int(row["job"])), folder, int(row["lost"]))
            for row, folder in zip(rows, folders, strict=True)
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def write_jobs(path: Path, jobs: Mapping[str, Job]) -> None:
    rows = [
        {"run": name, "job": job.job_id, "folder": job.folder.name, "lost": job.num_lost} for name, job in jobs.items()
    ]
    write_atomically(path, (json.dumps(rows, indent=1) + "\n").encode())
