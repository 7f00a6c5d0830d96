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

import argparse
import multiprocessing
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from faults import command, machine
from faults.catalog import FAULTS
from faults.kinds.fault import Fault
from faults.outcomes import Results, facts_of
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
        try:
            with _shards(args, tasks, possible, args.keep or Path(temporary)) as connections:
                _collect(connections, results, args.json)
        except KeyboardInterrupt:
            print("interrupted: this is what there was by then", flush=True)
    command.end(results, FAULTS)


@contextmanager
def _shards(
    args: argparse.Namespace, tasks: Sequence[str], faults: Sequence[Fault], directory: Path
) -> Iterator[list[Connection]]:
    """Start `args.jobs` processes, which share the turns, and yield the connections by which their outcomes come.

    At the end none of them is left, and with each go its runs. No second signal keeps it from that.
    """
    context = multiprocessing.get_context("fork")
    until = time.monotonic() + 60 * args.minutes
    connections, processes = [], []
    try:
        for idx in range(args.jobs):
            turns = islice(_turns(tasks, faults, args.faults, args.jobs, Random(args.seed)), idx, None, args.jobs)
            ours, theirs = context.Pipe(duplex=False)
            words = (idx, turns, until, theirs, directory / f"shard_{idx}", f"{args.seed}/{idx}")
            processes.append(context.Process(target=shard, args=words))
            processes[-1].start()
            theirs.close()
            connections.append(ours)
        yield connections
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, signal.SIG_IGN)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _turns(tasks: Sequence[str], faults: Sequence[Fault], num_faults: int, jobs: int, rng: Random) -> Iterator[Turn]:
    """Each task in turn with the faults that come next: of a task, every one once before any comes again."""
    decks = {task: _shuffled([fault for fault in faults if task in fault.tasks], rng) for task in tasks}
    left, in_a_row = num_faults, min(_FAULTS_IN_A_ROW, -(-num_faults // jobs))
    while True:
        for task in tasks:
            if left <= 0:
                return
            yield Turn(task, list(islice(decks[task], min(left, in_a_row))))
            left -= in_a_row


def _shuffled(faults: Sequence[Fault], rng: Random) -> Iterator[Fault]:
    while True:
        yield from rng.sample(faults, len(faults))


def _collect(connections: list[Connection], results: Results, json_file: Path | None) -> None:
    """Note and print each outcome as soon as it is known, until every shard has come to its end."""
    while connections:
        for ready in connection.wait(connections):
            try:
                outcome = ready.recv()
            except EOFError:
                connections.remove(ready)
                continue
            results.outcomes.append(outcome)
            results.write(json_file)
            print(outcome.sentence, flush=True)


if __name__ == "__main__":
    main()
