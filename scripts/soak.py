"""Trains at full speed for a while, kills workers all the time, and watches the memory and the descriptors of all.

    python scripts/soak.py --minutes 30 --json benchmarks/soak.json [any flag of sf-train]

Every `--restart_every_s` seconds the last rollout worker and the last policy worker are killed, and replaced by the
run; the others live as long as it. At the end SIGTERM ends it: the status is 1 where it does not save then. The table
compares the first and the last third of the run, without its first minute: for each process the median of its private
memory (what it shares is allocated once, before it starts) and of its open file descriptors. "engines" are the
processes that environments have started, together.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import json_file
from faults import processes
from faults.bookkeeping import NotRecoveredError
from faults.of_processes import replaced
from faults.of_runs import stop
from faults.outcomes import facts_of
from faults.session import Session
from rich import box
from rich.console import Console
from rich.table import Table

_LOOK_EVERY_S = 5.0
_HELPERS = {
    "resource tracker": "multiprocessing.resource_tracker",
    "fork server of the simulators": "sf.rollout.worker",
    "fork server of the networks": "sf.learner.worker",
}
_LEAST_SAMPLES = 2  # of each third

Sample = tuple[float, float, int]
"""Seconds since the start, private MB, open descriptors."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--restart_every_s", type=float, default=30.0)
    parser.add_argument("--settle_s", type=float, default=60.0, help="do not count the start: buffers still grow")
    parser.add_argument("--json", type=Path, help="write all that was seen here, too")
    args, train_flags = parser.parse_known_args()
    seconds, least_s = 60 * args.minutes, args.settle_s + 3 * _LEAST_SAMPLES * _LOOK_EVERY_S
    if not seconds >= least_s:
        parser.error(f"--minutes is {args.minutes:g}: at least {least_s / 60:g}, with --settle_s {args.settle_s:g}")
    json_file.require_writable(args.json)
    # Of a flag that is named twice, the last counts. Presets end sooner.
    train_flags = ["--env", "doom_basic", *train_flags, "--train_for_env_steps", str(10**10)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        flags = [*train_flags, "--train_dir", directory, "--experiment", "soak", "--max_restarts", "1000000"]
        flags += ["--policy_workers_per_policy", "2", "--summaries_every_sec", "1", "--save_every_sec", "15"]
        session = Session(flags, Path(directory) / "log")
        try:
            samples, num_restarts = _watch(session, seconds, args.restart_every_s)
            session.check()
            fps = session.metric("env_frames") / session.metric("seconds")
            broken = _end(session)
        finally:
            session.kill()
    summary = {name: _summary(of_name, args.settle_s, seconds) for name, of_name in sorted(samples.items())}
    _print(summary, num_restarts, fps)
    found = {"restarts": num_restarts, "frames_per_second": fps, "broken": broken}
    facts = {**facts_of(sys.argv), **found, "summary": summary, "samples": samples}
    json_file.write(args.json, facts, indent=None)
    if broken is not None:
        sys.exit(f"BROKEN at the end: {broken}")
    if not summary.get("parent"):
        sys.exit("There was no time to look at the processes in the first or the last third: name more --minutes")


def _end(session: Session) -> str | None:
    """What was promised of the end and did not happen."""
    try:
        stop(signal.SIGTERM)(session, Random(0))
    except NotRecoveredError as error:
        return str(error)
    return None


def _watch(session: Session, seconds: float, restart_every_s: float) -> tuple[dict[str, list[Sample]], int]:
    """Samples by the name of the process, and how many processes were killed."""
    end_at = time.monotonic() + seconds
    num_restarts = 0
    victims = [_last(session, "rollout"), _last(session, "policy")]
    ended = threading.Event()
    # A thread of its own looks, for a replacement may take longer than a third of a short soak.
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(_look_until, ended, session.pid)
        try:
            while not ended.wait(min(restart_every_s, end_at - time.monotonic())) and time.monotonic() < end_at:
                with replaced(session, *victims) as pids:
                    for pid in pids:
                        os.kill(pid, signal.SIGKILL)
                session.wait_for_progress()
                num_restarts += len(victims)
        finally:
            ended.set()
        return looking.result(), num_restarts


def _look_until(ended: threading.Event, parent: int) -> dict[str, list[Sample]]:
    began = time.monotonic()
    samples: defaultdict[str, list[Sample]] = defaultdict(list)
    try:
        while not ended.is_set():
            at = time.monotonic() - began
            for name, (megabytes, descriptors) in _look(parent).items():
                samples[name].append((at, megabytes, descriptors))
            ended.wait(_LOOK_EVERY_S)
    finally:
        ended.set()  # without looks there is no reason to go on
    return samples


def _last(session: Session, role: str) -> str:
    names = (name for name in session.names() if name.startswith(f"{role}-"))
    return max(names, key=lambda name: int(name.partition("-")[2]))


def _look(parent: int) -> dict[str, tuple[float, int]]:
    """Private megabytes and descriptors of each process of the run; those that environments started as one."""
    found: defaultdict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    helpers = {processes.helper(parent, module): name for name, module in _HELPERS.items()}
    names = {child.pid: child.name for child in processes.children_of_run(parent)}
    for pid in (parent, *processes.alive_below(parent)):
        name = "parent" if pid == parent else helpers.get(pid) or names.get(pid, "engines")
        with suppress(OSError):  # it has ended meanwhile
            megabytes, descriptors = found[name]
            found[name] = (
                megabytes + _private_megabytes(pid),
                descriptors + len(list(Path(f"/proc/{pid}/fd").iterdir())),
            )
    return dict(found)


def _private_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def _summary(samples: list[Sample], settle_s: float, seconds: float) -> dict[str, Any]:
    third = (seconds - settle_s) / 3
    first = [sample for sample in samples if settle_s <= sample[0] < settle_s + third]
    last = [sample for sample in samples if sample[0] >= seconds - third]
    if not first or not last:
        return {}
    return {
        "first_megabytes": statistics.median(megabytes for _, megabytes, _ in first),
        "last_megabytes": statistics.median(megabytes for _, megabytes, _ in last),
        "first_descriptors": statistics.median(descriptors for _, _, descriptors in first),
        "last_descriptors": statistics.median(descriptors for _, _, descriptors in last),
    }


def _print(summary: dict[str, dict[str, Any]], num_restarts: int, fps: float) -> None:
    columns = ("process", "private MB, first third", "last third", "descriptors, first third", "last third")
    table = Table(*columns, box=box.MARKDOWN)
    for name, row in summary.items():
        if row:
            megabytes = (f"{row[f'{part}_megabytes']:.1f}" for part in ("first", "last"))
            descriptors = (f"{row[f'{part}_descriptors']:.0f}" for part in ("first", "last"))
            table.add_row(name, *megabytes, *descriptors)
    Console(width=140).print(
        table, f"{num_restarts} processes killed and replaced, {fps:,.0f} frames/s", highlight=False
    )


if __name__ == "__main__":
    main()
