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

import shlex
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

from learning import report
from learning import tasks as task_table
from learning import turns as runs
from learning.results import NAME, Record, Results, newest_own
from learning.tasks import TABLE, Task
from learning.turns import Learner
from peers.options import REPOSITORY
from peers.own import Own
from peers.sample_factory import SampleFactory
from peers.sb3 import StableBaselines3
from peers.trainer import Order
from peers.trees import tree_of

from sf.storage import run_lock
from sf.tools.commands import cli

say = partial(print, flush=True)
TrainerName = Literal["own", "stable_baselines3", "sample_factory"]


@dataclass(frozen=True)
class Options:
    """Says what to compare, and where the results go."""

    tasks: tuple[str, ...] = ()
    """Rows of the table. Default: all of them."""

    trainers: tuple[TrainerName, ...] = ("own", "stable_baselines3", "sample_factory")
    """own is this project; the peers are stable_baselines3 and sample_factory."""

    own: tuple[str, ...] = ("tree",)
    """States of this project: commits, or tree, the files as they are. Each is a trainer."""

    own_flags: tuple[str, ...] = ("",)
    """More flags of sf-train: '' 'optimizer=muon encoder_mlp_layers=128 64' are two trainers of each state."""

    seeds: tuple[int, ...] = (1, 2, 3)
    """A run of each task and trainer for each of them."""

    frames: int | None = None
    """Train for this many frames instead of those of the table."""

    episodes: int = 100
    """Episodes of each of the two evaluations of a run."""

    device: Literal["cpu", "cuda"] = "cpu"
    """All trainers run their networks there."""

    results: Path = Path("train_dir/bench_learning")
    """Folder of results.jsonl, the runs, the checkouts and the report. The same folder goes on where it was stopped."""

    retry: cli.Switch = False
    """Make the runs again that failed."""

    report: cli.Switch = False
    """Only make the report again."""

    newest_own: cli.Switch = False
    """Report all states of this project as one trainer: of each task and seed the run that came last."""

    table: Path = TABLE
    """The tasks."""

    peers_dir: Path = REPOSITORY / ".peers"
    """Holds the virtual environments of the peers."""

    lock: Path = Path(tempfile.gettempdir()) / "bench_learning.lock"
    """The lock of the machine. Benches with the same one never run at the same time."""

    def __post_init__(self) -> None:
        for name in ("trainers", "own", "own_flags", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                said = " ".join(map(str, values)) or "empty"
                raise ValueError(f"{name} is {said}: name at least one, and each once")
        for name in ("frames", "episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: at least 1")
        if min(self.seeds) < 0 or max(self.seeds) >= 2**31 - 2_000_000:
            raise ValueError(f"seeds is {' '.join(map(str, self.seeds))}: each from 0 to 2,145,483,647")


def main() -> None:
    """Ends with 0, 1 if runs failed, 2 after a user's mistake, 130 after Ctrl-C."""
    options = cli.parse_flags(Options, "bench_learning.py", "Compare what trainers learn, task by task.")
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    with cli.exit_status():
        tasks = task_table.read(options.table)
        chosen = task_table.chosen(tasks, options.tasks)
        if options.report:
            _report(Results(options.results / NAME), tasks, chosen, options)
            return
        trainers = _trainers(options)
        with run_lock.held(options.lock, flag="lock"), run_lock.held(options.results, flag="results"):
            num_failed = _bench(options, tasks, chosen, trainers)
    sys.exit(1 if num_failed else 0)


def _stop(number: int, _: object) -> NoReturn:
    """Once: what has been started is ended in peace."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def _trainers(options: Options) -> list[Learner]:
    """Raises ValueError where a commit is unknown."""
    trees = (tree_of(name, options.results / "trees") for name in options.own)
    states = {own.name: own for tree in trees for own in (Own(tree, flags) for flags in options.own_flags)}
    found: dict[TrainerName, Sequence[Learner]] = {
        "own": list(states.values()),
        "stable_baselines3": [StableBaselines3(options.peers_dir)],
        "sample_factory": [SampleFactory(options.peers_dir)],
    }
    return [trainer for name in options.trainers for trainer in found[name]]


def _bench(options: Options, tasks: Mapping[str, Task], chosen: Sequence[Task], trainers: Sequence[Learner]) -> int:
    """Returns how many runs have failed."""
    results = Results(options.results / NAME)

    def order(task: Task, seed: int) -> Order:
        return Order(task, options.frames or task.frames, seed, options.episodes, options.device)

    turns = runs.all_turns(chosen, trainers, options.seeds, order, say)
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


if __name__ == "__main__":
    main()
