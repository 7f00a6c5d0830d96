"""What SLURM says of jobs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

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
    """By the accounting of the cluster, where it has one."""
    of_sacct = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=State", f"--jobs={job_id}"]
    try:
        asked = subprocess.run(of_sacct, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return FORGOTTEN
    words = asked.stdout.split()  # CANCELLED by 1000
    return words[0] if words and words[0] in OVER else FORGOTTEN
