"""How much memory a run takes, by role: a table for docs/speed.md.

    python scripts/documentation/memory_of_a_run.py --num_workers 2 36 72 --flags="--env doom_battle"

starts each run, waits until it has trained for --seconds, reads what the kernel says of its processes
(/proc/PID/smaps_rollup), and ends it. What one process alone maps is private; of what several map (trajectories,
weights, what a fork shares with its parent) each has its share, so that the sum is what the machine gives.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sf.tools.commands import cli

STARTS_WITHIN_S = 600
MB = 1 << 20


@dataclass(frozen=True)
class Flags:
    """What is measured."""

    num_workers: tuple[int, ...] = (2, 36, 72)
    """One run for each of these numbers of rollout workers."""

    flags: str = "--env CartPole-v1"
    """Further flags of sf-train."""

    seconds: int = 20
    """Seconds of training before the look."""


@dataclass
class Role:
    """Processes of one kind. Bytes of all of them."""

    count: int = 0
    private: int = 0
    shared: int = 0


def main() -> None:
    flags = cli.parse_flags(Flags, "memory_of_a_run.py", "Measure how much memory a run takes, by role.")
    print("| workers | role | processes | private, MB each | shared, MB in all |\n|---|---|---|---|---|")
    for num_workers in flags.num_workers:
        roles = measured([*shlex.split(flags.flags), "--num_workers", str(num_workers)], flags.seconds)
        for row in rows(num_workers, roles):
            print(row, flush=True)


def rows(num_workers: int, roles: dict[str, Role]) -> Iterator[str]:
    """Of the table in Markdown, the largest role first, then the sum."""
    for name, role in sorted(roles.items(), key=lambda item: -item[1].private - item[1].shared):
        each = role.private / role.count / MB
        yield f"| {num_workers} | {name} | {role.count} | {each:,.1f} | {role.shared / MB:,.0f} |"
    total = sum(role.private + role.shared for role in roles.values())
    yield f"| {num_workers} | all | {sum(role.count for role in roles.values())} | | {total / MB:,.0f} with private |"


def measured(command: list[str], seconds: float) -> dict[str, Role]:
    """Start sf-train with these flags, look at its processes after so many seconds of training, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        full = [sys.executable, "-m", "sf", *command, "--train_dir", folder, "--experiment", "run"]
        said = Path(folder, "said")
        with said.open("w") as out, subprocess.Popen(full, stdout=out, stderr=subprocess.STDOUT) as process:
            try:
                wait_for_training(process, said, Path(folder, "run", "metrics.jsonl"), seconds)
                return by_role(process.pid)
            finally:
                process.send_signal(signal.SIGINT)


def wait_for_training(process: subprocess.Popen[bytes], said: Path, metrics: Path, seconds: float) -> None:
    ends = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < ends:
        if process.poll() is not None:
            cli.fail(f"the run ended before it was measured: {said.read_text().strip()}")
        if metrics.exists() and any(json.loads(line).get("env_steps") for line in metrics.read_text().splitlines()):
            time.sleep(seconds)
            return
        time.sleep(0.5)
    cli.fail(f"the run did not train within {STARTS_WITHIN_S} s")


def by_role(root: int) -> dict[str, Role]:
    """Sizes of the process and of all that come from it."""
    roles: dict[str, Role] = defaultdict(Role)
    for pid in family(root):
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        sizes = memory(Path(f"/proc/{pid}/smaps_rollup").read_text())
        if not sizes:  # it has ended, and its parent has not looked yet
            continue
        role = roles[role_of(name) if pid != root else "parent"]
        role.count += 1
        role.private += sizes["Private_Clean"] + sizes["Private_Dirty"]
        role.shared += sizes["Pss"] - sizes["Private_Clean"] - sizes["Private_Dirty"]
    return roles


def family(pid: int) -> Iterator[int]:
    """The process and all that come from it."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def role_of(name: str) -> str:
    """The name of a process without its number."""
    return "fork server" if name.startswith("python") else re.sub(r"-\d+$", "", name)


def memory(smaps_rollup: str) -> dict[str, int]:
    """Bytes by name."""
    return {name: 1024 * int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", smaps_rollup, re.MULTILINE)}


if __name__ == "__main__":
    main()
