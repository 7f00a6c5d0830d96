"""Trains, and does to the run all that may happen on a shared machine, at random moments and to random processes.

    python scripts/fault_campaign.py --minutes 10 --seed 0

After each fault it waits until the run goes on as if nothing had been: every trajectory slot goes round again, the
learner trains, no counter has fallen, each child is there once, and at the end of a run no process and no shared
memory is left. It prints a table, and ends with status 1 where a promise was broken; docs/reliability.md says what is
promised.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

from faults import processes
from faults.catalog import FAULTS, Fault
from faults.session import NotRecoveredError, Session
from faults.tasks import TASKS, flags
from rich import box
from rich.console import Console
from rich.table import Table

_FAULTS_IN_A_ROW = 6  # before it is another task's turn
_GONE_WITHIN_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="no new fault after that")
    parser.add_argument("--faults", type=int, default=10**9, help="or after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", default=["toy", "toy_sync", "pair", "atari", "doom"], choices=list(TASKS))
    parser.add_argument("--only", nargs="+", metavar="WORD", help="faults with one of these words in their name")
    parser.add_argument("--keep", type=Path, help="write runs and their output here, and keep them")
    parser.add_argument("--json", type=Path, help="write the result here, too")
    args = parser.parse_args()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # whatever outlives its run becomes a child of this process
    faults = [fault for fault in FAULTS if not args.only or any(word in fault.name for word in args.only)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        directory = args.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(directory, faults, Random(args.seed), args.json)
        campaign.run(args.tasks, time.monotonic() + 60 * args.minutes, args.faults)
    _print_table(campaign.outcomes)
    sys.exit(any(outcome.broken for outcome in campaign.outcomes))


@dataclass(frozen=True)
class Outcome:
    task: str
    fault: str
    seconds: float  # until training had gone on, in a resumed run where it was ended
    seconds_to_end: float | None  # where it was
    frames_lost: int  # that training had to do without, or again
    episodes_lost: int
    broken: str | None  # what was promised and did not happen


class Campaign:
    """Runs of several tasks in turn, with faults."""

    def __init__(self, directory: Path, faults: list[Fault], rng: Random, json_file: Path | None) -> None:
        """json_file: where the outcomes go, each as soon as it is known."""
        self.outcomes: list[Outcome] = []
        self._directory = directory
        self._faults = faults
        self._rng = rng
        self._json_file = json_file
        self._decks: dict[str, list[Fault]] = {}
        self._log_numbers = count()
        self._shared_memory_before = set(Path("/dev/shm").iterdir())

    def run(self, tasks: list[str], until: float, num_faults: int) -> None:
        while len(self.outcomes) < num_faults and time.monotonic() < until:
            task = tasks[0]
            tasks = [*tasks[1:], task]
            session = self._start(task)
            try:
                for _ in range(_FAULTS_IN_A_ROW):
                    if len(self.outcomes) >= num_faults or time.monotonic() >= until:
                        break
                    session = self._do_next(task, session)
            finally:
                session.kill()
            try:
                self._require_nothing_left()
            except NotRecoveredError as error:
                self._note(Outcome(task, "parent killed", 0.0, 0.0, 0, 0, str(error)))

    def _do_next(self, task: str, session: Session) -> Session:
        """One fault; the session that goes on."""
        fault = self._draw(task)
        time.sleep(self._rng.uniform(0.0, 2.0))
        print(f"{len(self.outcomes):4} {task:9} {fault.name} ...", end=" ", flush=True)
        began = time.monotonic()
        try:
            goes_on, outcome = self._recover(task, session, fault)
        except NotRecoveredError as error:
            self._note(Outcome(task, fault.name, time.monotonic() - began, None, 0, 0, str(error)))
            print(f"NOT RECOVERED: {error}\n{self._log.read_text()[-5000:]}", flush=True)
            session.kill()
            self._directory = self._directory / "after"  # what it left may be broken
            self._directory.mkdir()
            return self._start(task)
        self._note(outcome)
        print(
            f"{outcome.seconds:.1f} s, {outcome.frames_lost} frames and {outcome.episodes_lost} episodes lost",
            flush=True,
        )
        return goes_on

    def _recover(self, task: str, session: Session, fault: Fault) -> tuple[Session, Outcome]:
        began = time.monotonic()
        frames_before, episodes_before = session.metric("lost_frames"), session.metric("lost_episodes")
        fault.do(session, self._rng)
        if session.exit_status is None:
            session.wait_for_progress()
            seconds = time.monotonic() - began
            session.wait_for_record()
            frames = session.metric("lost_frames") - frames_before
            episodes = session.metric("lost_episodes") - episodes_before
            return session, Outcome(task, fault.name, seconds, None, int(frames), int(episodes), None)
        seconds_to_end = time.monotonic() - began
        self._require_nothing_left()
        resumed = self._start(task)
        frames = session.plan.spec.frameskip * (session.env_steps - resumed.first_step)
        episodes = session.plan.num_actors
        return resumed, Outcome(task, fault.name, time.monotonic() - began, seconds_to_end, frames, episodes, None)

    def _note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self._json_file:
            self._json_file.write_text(json.dumps([dataclasses.asdict(known) for known in self.outcomes], indent=1))

    def _start(self, task: str) -> Session:
        self._log = self._directory / f"{next(self._log_numbers):03}-{task}.log"
        return Session(flags(task, self._directory), self._log)

    def _draw(self, task: str) -> Fault:
        """Every fault once before any comes again."""
        if not self._decks.get(task):
            fitting = [fault for fault in self._faults if task in fault.tasks]
            self._decks[task] = self._rng.sample(fitting, len(fitting))
        return self._decks[task].pop()

    def _require_nothing_left(self) -> None:
        """Files that come and go are those of others on this machine: what is left stays."""
        give_up_at = time.monotonic() + _GONE_WITHIN_S
        shared = processes.orphaned_memory(self._shared_memory_before)
        while (left := processes.alive_below(os.getpid())) or shared:
            if time.monotonic() > give_up_at:
                raise NotRecoveredError(f"left behind: processes {sorted(left)}, memory {sorted(map(str, shared))}")
            time.sleep(0.05)
            shared &= processes.orphaned_memory(self._shared_memory_before)


def _print_table(outcomes: list[Outcome]) -> None:
    columns = ("fault", "times", "recovered", "s", "s at most", "s to end at most", "frames lost", "episodes lost")
    table = Table(*columns, box=box.MARKDOWN)
    for name in [fault.name for fault in FAULTS]:
        of_name = [outcome for outcome in outcomes if outcome.fault == name]
        if of_name:
            seconds = [outcome.seconds for outcome in of_name]
            to_end = [outcome.seconds_to_end for outcome in of_name if outcome.seconds_to_end is not None]
            table.add_row(
                name,
                str(len(of_name)),
                str(sum(outcome.broken is None for outcome in of_name)),
                f"{statistics.median(seconds):.1f}",
                f"{max(seconds):.1f}",
                f"{max(to_end):.1f}" if to_end else "",
                f"{statistics.median(outcome.frames_lost for outcome in of_name):,.0f}",
                f"{statistics.median(outcome.episodes_lost for outcome in of_name):.0f}",
            )
    num_recovered = sum(outcome.broken is None for outcome in outcomes)
    Console(width=140).print(table, f"{len(outcomes)} faults, {num_recovered} recovered", highlight=False)


if __name__ == "__main__":
    main()
