"""Trains, and does to the run all that may happen on a shared machine, at random moments and to random processes.

    python scripts/fault_campaign.py --minutes 10 --seed 0
    python scripts/fault_campaign.py --faults 400 --jobs 4 --minutes 75 --json out.json
    python scripts/fault_campaign.py --markdown out.json

After each fault it waits until the run goes on as if nothing had been: every trajectory slot goes round again, the
learner trains, no counter has fallen, each child is there once, and at the end of a run no process and no shared
memory is left. It prints a table, and ends with status 1 where a promise was broken, or nothing was tried;
docs/reliability.md says what is promised.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from faults import command, machine
from faults.catalog import FAULTS
from faults.kinds.fault import Fault
from faults.outcomes import Outcome, Results, facts_of
from faults.shard import Turn, shard
from faults.tasks import TASKS

_FAULTS_IN_A_ROW = 6  # before it is another task's turn


def main() -> None:
    parser = command.parser(__doc__)
    parser.set_defaults(minutes=10.0)
    parser.add_argument("--jobs", type=int, default=1, help="runs that are hurt side by side: much is waiting")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS), help="in turn; may repeat")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error(f"--jobs is {args.jobs}: above 0")
    faults = command.begin(args, FAULTS)
    results = Results([], facts_of(sys.argv))
    machine.obey_permissions()
    possible = [fault for fault in faults if fault.is_possible()]
    tasks = [task for task in args.tasks if any(task in fault.tasks for fault in possible)]
    if not tasks:
        parser.error("--only leaves no fault for --tasks")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        campaign = Campaign(results, args.json, time.monotonic() + 60 * args.minutes)
        try:
            turns = _turns(tasks, possible, Random(args.seed))
            campaign.run(turns, args.faults, args.jobs, args.keep or Path(temporary), args.seed)
        except KeyboardInterrupt:
            print("interrupted: this is what there was by then", flush=True)
        finally:
            campaign.end()
    command.end(results, FAULTS)


def _turns(tasks: Sequence[str], faults: Sequence[Fault], rng: Random) -> Iterator[tuple[str, Iterator[Fault]]]:
    """Each task in turn with the faults that come next: of a task, every one once before any comes again."""
    decks = {task: _shuffled([fault for fault in faults if task in fault.tasks], rng) for task in tasks}
    while True:
        for task in tasks:
            yield task, decks[task]


def _shuffled(faults: Sequence[Fault], rng: Random) -> Iterator[Fault]:
    while True:
        yield from rng.sample(faults, len(faults))


class Campaign:
    """Hands turns to shards, and collects what they find."""

    def __init__(self, results: Results, json_file: Path | None, until: float) -> None:
        """json_file: where the outcomes go, each as soon as it is known. until: time.monotonic()."""
        self._results = results
        self._json_file = json_file
        self._until = until
        self._shards: dict[Connection, BaseProcess] = {}

    def run(
        self, turns: Iterator[tuple[str, Iterator[Fault]]], num_faults: int, jobs: int, directory: Path, seed: int
    ) -> None:
        context = multiprocessing.get_context("fork")
        for idx in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=shard, args=(idx, theirs, directory / f"shard_{idx}", f"{seed}/{idx}"))
            process.start()
            theirs.close()
            self._shards[ours] = process
        left, in_a_row = num_faults, min(_FAULTS_IN_A_ROW, -(-num_faults // jobs))
        idle = list(self._shards)
        busy: list[Connection] = []
        while True:
            while idle and left > 0 and time.monotonic() < self._until:
                task, deck = next(turns)
                names = [fault.name for fault in islice(deck, min(left, in_a_row))]
                left -= len(names)
                busy.append(idle.pop(0))
                busy[-1].send(Turn(task, names, self._until))
            if not busy:
                return
            for ready in connection.wait(busy):
                assert isinstance(ready, Connection)
                found = ready.recv()
                if isinstance(found, Outcome):
                    self._results.outcomes.append(found)
                    self._results.write(self._json_file)
                    print(found.sentence, flush=True)
                else:
                    left += found
                    busy.remove(ready)
                    idle.append(ready)

    def end(self) -> None:
        """No shard is left, and with each go its runs. No second signal keeps it from that."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, signal.SIG_IGN)
        for process in self._shards.values():
            process.terminate()
        for process in self._shards.values():
            process.join()


if __name__ == "__main__":
    main()
