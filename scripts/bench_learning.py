"""What trainers learn, task by task, in the same number of frames: this project, Stable-Baselines3, Sample Factory.

    python scripts/bench_learning.py --tasks CartPole-v1 Acrobot-v1 --seeds 1 2 3
    python scripts/bench_learning.py --own HEAD v0.1.0 --trainers own
    python scripts/bench_learning.py --own_flags '' optimizer=muon --trainers own
    python scripts/bench_learning.py --report

Each trainer has its own settings for each task. A run takes the whole machine: one at a time, the trainers in turn for
each seed of a task. After training, 100 episodes with sampled actions and 100 deterministic ones are played in
environments that training has not seen. The tasks are rows of scripts/learning/tasks.yaml.

Every run that ended is a line of results.jsonl in --results. The same command goes on where it was stopped. At the end,
and with --report, it writes report.md, report.json and report.png there.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

from learning import tasks as task_table
from learning import turns as runs
from learning.options import Options
from learning.reporting import report
from learning.results import NAME, Record, Results, newest_own
from learning.tasks import Task
from learning.trainers.own import Own
from learning.trainers.sample_factory import SampleFactory
from learning.trainers.sb3 import StableBaselines3
from learning.trainers.trainer import Trainer
from learning.trainers.trees import tree_of

from sf.storage import run_lock
from sf.tools.commands import cli

say = partial(print, flush=True)


def main() -> None:
    """Ends with 0, 1 if runs failed, 2 after a user's mistake, 130 after Ctrl-C."""
    options = cli.parse_flags(Options, "bench_learning.py", "Compare what trainers learn, task by task.")
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    with cli.exit_status():
        tasks = task_table.read(options.table)
        chosen = task_table.chosen(tasks, options.tasks)
        if options.report:
            _report(_results(options), tasks, chosen, options)
            return
        trainers = _trainers(options)
        with machine_lock(options.lock), run_lock.held(options.results, say, flag="results"):
            num_failed = _bench(options, tasks, chosen, trainers)
    sys.exit(1 if num_failed else 0)


def _stop(number: int, _: object) -> NoReturn:
    """Once: what has been started is ended in peace."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def _trainers(options: Options) -> list[Trainer]:
    """Raises ValueError where a commit is unknown."""
    trees = (tree_of(name, options.results / "trees") for name in options.own)
    states = {own.name: own for tree in trees for own in (Own(tree, flags) for flags in options.own_flags)}
    found: dict[str, Sequence[Trainer]] = {
        "own": list(states.values()),
        "stable_baselines3": [StableBaselines3(options.peers_dir)],
        "sample_factory": [SampleFactory(options.peers_dir)],
    }
    return [trainer for name in options.trainers for trainer in found[name]]


def _results(options: Options) -> Results:
    results = Results(options.results / NAME)
    if results.has_unfinished_line:
        say(f"{results.path}: the last line was not finished, and does not count")
    return results


def _bench(options: Options, tasks: Mapping[str, Task], chosen: Sequence[Task], trainers: Sequence[Trainer]) -> int:
    """Returns how many runs have failed."""
    results = _results(options)
    turns = runs.all_turns(options, chosen, trainers, say)
    missing = runs.missing(turns, results.latest(), options.retry)
    try:
        possible = runs.prepared(missing, say)
        say(f"{len(turns) - len(missing)} of {len(turns)} runs are there already, {len(possible)} are to be made")
        runs.make(possible, results, options.results / "runs", say)
    except KeyboardInterrupt as stop:
        left = len(runs.missing(turns, results.latest(), options.retry))
        say(f"stopped with {left} of {len(turns)} runs left; to go on: {shlex.join(['python', *sys.argv])}")
        raise SystemExit(128 + (stop.args[0] if stop.args else signal.SIGINT)) from None
    try:
        _report(results, tasks, chosen, options)
    except ValueError as error:  # the runs are there, and --report makes it later
        say(f"{error}; then the same command with --report")
    keys = {turn.key for turn in turns}
    failed = [record for key, record in results.latest().items() if key in keys and record["state"] == "failed"]
    if failed:
        say(f"{len(failed)} of {len(turns)} runs failed: --retry makes them again")
    return len(failed)


def _report(results: Results, tasks: Mapping[str, Task], chosen: Sequence[Task], options: Options) -> None:
    """Of the tasks that were chosen. Without --tasks: of all that there are results of."""
    names = {task.name for task in chosen}
    of_each_run: Iterable[Record] = newest_own(results.records) if options.newest_own else results.latest().values()
    records = [record for record in of_each_run if not options.tasks or record["task"] in names]
    if not records:
        raise ValueError(f"{results.path} has no result of these tasks: start without --report first")
    say(report.make(records, tasks, options.results))
    say(f"report: {options.results / 'report.md'}, {options.results / 'report.png'}")


@contextmanager
def machine_lock(path: Path) -> Iterator[None]:
    """Lock the machine: two benches at a time would slow each other down.

    The kernel frees the lock when the process ends. Children inherit no descriptor and so do not hold it.

    Raises ValueError where another process has it, or the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ValueError(f"{path} cannot be locked ({error.strerror}): name another --lock") from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 1000).decode(errors="replace") or "another process"
            raise ValueError(f"{holder} has the machine: wait for its end, or stop it") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()} ({shlex.join(sys.argv)}, in {Path.cwd()})".encode(), 0)
        yield
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
