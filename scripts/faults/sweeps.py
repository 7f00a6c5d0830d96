"""One `sf-sweep` of two flags with two values each, started as a user starts it and watched from outside.

Whoever ends it, its runs save; the same command goes on with each where it was. At its end every run of the grid is
there, once, with its steps.
"""

from __future__ import annotations

import csv
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import yaml
from faults import bookkeeping, processes, tasks
from faults.bookkeeping import NotRecoveredError
from faults.machine import patience
from faults.session import start_process
from faults.watch import PATIENCE_S, Beginning, EndedError, RunWatch

from sf.storage.run_dir import RunDir
from sf.tools.sweep.grid import read_sweep

ENV_STEPS = 10_000  # of each run: 20 s and more
_PARALLEL = 2
_LOOK_EVERY_S = 0.1
_RUNS_SAVE_WITHIN_S = 30.0
_SF_SWEEP = "from sf.tools.commands.entry_points import sf_sweep; sf_sweep()"  # as the installed command begins
_EARLY = 0.7  # of a run: later it may be done before it is hurt
_SWEEP = {
    "flags": {
        "env": "reach:Reach",
        "env_kwargs": '{"pace_s": 0.002}',
        "encoder_mlp_layers": 16,
        "num_workers": 1,
        "num_envs_per_worker": 4,
        "device": "cpu",
        "learner_threads": 1,
        "summaries_every_sec": 0.5,
        "save_every_sec": 2,
        "worker_timeout_s": 10,
        "max_restarts": 1000,
        "train_for_env_steps": ENV_STEPS,
    },
    "grid": {"rollout": [8, 16], "batch_size": [64, 128]},
    "seeds": [7],
}


class _Left(NamedTuple):
    """Tells what there was of a run when nobody trained it last."""

    steps: int  # env steps that were saved
    size: int  # bytes of metrics.jsonl
    is_done: bool


class Grid:
    """The runs of a sweep on the disk, and what there was of each when nobody trained it last.

    directory: that of the sweep's file, in which the sweep has a directory of the same name.
    """

    def __init__(self, directory: Path, number: int) -> None:
        self.file = directory / f"sweep_{number}.yaml"
        self.file.write_text(yaml.safe_dump(_SWEEP))
        self.directory = directory / self.file.stem
        self.names = [run.name for run in read_sweep(self.file)]
        self._left: dict[str, _Left] = {}
        for name in self.names:
            self.note(name)

    def run_dir(self, name: str) -> RunDir:
        return RunDir(self.directory / name)

    def note(self, name: str) -> None:
        """Nobody trains this run now."""
        run_dir = self.run_dir(name)
        size = run_dir.metrics.stat().st_size if run_dir.metrics.exists() else 0
        summary = bookkeeping.parse(run_dir.summary.read_text(), run_dir.summary) if run_dir.summary.is_file() else {}
        is_done = summary.get("stopped_by", "not at its end") is None
        self._left[name] = _Left(bookkeeping.steps_saved(run_dir.checkpoints), size, is_done)

    def beginning(self, name: str, flags: list[str]) -> Beginning:
        """Of a run that goes on since: what it has saved by now tells nothing of how it began."""
        return replace(Beginning.of(flags), first_step=self._left[name].steps, metrics_before=self._left[name].size)

    def check(self) -> None:
        """No run has gone back behind what was saved of it, and none that was done has been touched."""
        for name in self.names:
            left, metrics = self._left[name], self.run_dir(name).metrics
            bookkeeping.require_files_in_order(self.run_dir(name))
            records = bookkeeping.whole_lines(metrics, left.size)
            steps = [bookkeeping.parse(line, metrics)["env_steps"] for line in records]
            if steps and min(steps) < left.steps:
                raise NotRecoveredError(f"{name} had {left.steps} env steps, and went on from {min(steps)}")
            if left.is_done and records:
                raise NotRecoveredError(f"{name} was done, and was trained again")

    def check_results(self) -> None:
        """At the end: each run is there, once, with its steps."""
        self.check()
        with (self.directory / "results.csv").open() as file:
            rows = {row["run"]: row for row in csv.DictReader(file)}
        if sorted(rows) != sorted(self.names):
            raise NotRecoveredError(f"results.csv has the runs {sorted(rows)}")
        there = sorted(path.name for path in self.directory.iterdir() if path.is_dir())
        if there != sorted(self.names):
            raise NotRecoveredError(f"the sweep has the directories {there}")
        for name, row in rows.items():
            saved = bookkeeping.steps_saved(self.run_dir(name).checkpoints)
            config = yaml.safe_load(self.run_dir(name).config.read_text())
            iteration = config["batch_size"] * config["num_batches_per_epoch"]
            most = ENV_STEPS + 2 * iteration  # a successor may count one that its predecessor was at
            if row["state"] != "done" or not ENV_STEPS <= float(row["env_steps"]) == saved <= most:
                raise NotRecoveredError(f"{name}: {row['state']}, {row['env_steps']} env steps, {saved} saved")


class SweepSession:
    """A sweep under way. directory: of its file."""

    def __init__(self, directory: Path, log: Path) -> None:
        self.log = log
        self._directory = directory
        self._lost = (0, 0)
        self._watches: dict[str, RunWatch] = {}  # by the name of a run: its latest session
        self._begin()

    def _begin(self) -> None:
        """The sweep that is not complete yet, or a new one."""
        self._start()
        try:
            self.wait_for_progress()
        except BaseException:
            self.kill()
            raise

    def _start(self) -> None:
        number = len(list(self._directory.glob("sweep_*.complete")))
        self.grid = Grid(self._directory, number)
        self._killed: set[str] = set()  # runs whose parent was killed: they fail, and wait for the next session
        self._process = self.start_process(self.log)
        self.pid = self._process.pid

    def start_process(self, log: Path) -> subprocess.Popen:
        return start_process(self.arguments, log, tasks.folder("sweep"))

    @property
    def arguments(self) -> list[str]:
        places = ["--train_dir", str(self._directory), "--parallel", str(_PARALLEL)]
        return ["-c", _SF_SWEEP, str(self.grid.file), "--trust", "true", *places]

    # What it does

    @property
    def exit_status(self) -> int | None:
        return self._process.poll()

    def runs(self) -> dict[str, int]:
        """Process ids of the parents of runs that are alive, by name."""
        found = {}
        for process in processes.below(self.pid):
            words = _command_line(process.pid) if process.parent == self.pid and not process.is_zombie else []
            if "--experiment" in words:
                found[words[words.index("--experiment") + 1]] = process.pid
        return found

    def pick(self, rng: Random) -> RunWatch:
        """A run that trains, and will for a while. Where all are done, of the next sweep."""
        while True:
            while self.exit_status is None:
                self.wait_for_progress()
                early = [w for w in self._living() if w.env_steps < _EARLY * ENV_STEPS]
                if early:
                    return rng.choice(early)
                time.sleep(_LOOK_EVERY_S)
            self.finish()
            self._begin()

    def kill_parent_of(self, watch: RunWatch) -> None:
        """The run fails, and nothing of it is left but its files."""
        name = watch.run_dir.path.name
        below = processes.alive_below(watch.pid)
        self._killed.add(name)
        os.kill(watch.pid, 9)
        if left := processes.wait_until_gone({watch.pid, *below}, patience(_RUNS_SAVE_WITHIN_S)):
            raise NotRecoveredError(f"processes {sorted(left)} have outlived the parent of their run")
        self.grid.note(name)
        began = time.monotonic()
        while f"failed {name}" not in self.log.read_text(errors="replace").replace("\n", ""):
            if time.monotonic() - began > patience(_RUNS_SAVE_WITHIN_S):
                raise NotRecoveredError(f"the sweep did not say that {name} failed")
            time.sleep(_LOOK_EVERY_S)
        self._lost = (max(0, watch.env_steps - watch.env_steps_saved()), watch.plan.num_actors)

    # Of the campaign

    def wait_for_record(self) -> None:
        """Its runs have shown that they train."""

    def wait_for_progress(self) -> None:
        """Until every run that is under way has trained on, or the sweep has come to its end."""
        began = time.monotonic()
        while self.exit_status is None:
            runs = {name: pid for name, pid in self.runs().items() if name not in self._killed}
            if runs and all(self._trains_on(name, pid) for name, pid in runs.items()):
                self.grid.check()
                return
            waited = time.monotonic() - began
            if waited > max(PATIENCE_S, patience(PATIENCE_S)):
                raise NotRecoveredError(f"no run has trained on for {waited:.0f} s; under way: {sorted(runs)}")
            time.sleep(_LOOK_EVERY_S)
        if self.exit_status not in ((1,) if self._killed else (0,)):
            raise NotRecoveredError(f"the sweep ended with status {self.exit_status}")
        self.grid.check()

    def losses(self) -> tuple[int, int]:
        """Frames and episodes of all its runs that are lost by now."""
        lost, self._lost = self._lost, (0, 0)
        frames, episodes = (sum(w.metric(f"lost_{what}") for w in self._living()) for what in ("frames", "episodes"))
        return int(frames) + lost[0], int(episodes) + lost[1]

    def losses_with_the_end(self) -> tuple[int, int]:
        """What its runs had trained on and had not saved; their episodes."""
        return self._lost

    def finish(self) -> None:
        """To the end of the sweep, going on once more with the runs that were killed."""
        status = self._wait_for_end(10 * PATIENCE_S)
        while status == 1 and self._killed:
            self.grid.check()
            self._start()
            status = self._wait_for_end(10 * PATIENCE_S)
        if status != 0:
            raise NotRecoveredError(f"the sweep ended with status {status}")
        self.grid.check_results()
        self.grid.file.with_suffix(".complete").touch()

    # The end

    def end(self, *signums: int, after_s: float = 0.0, saves: bool = True) -> int:
        """The exit status after these signals, `after_s` apart, when all runs have ended. saves: the runs shall.

        They go to its process group, as a terminal does; the runs have their own.
        """
        living, below = self._living(), processes.alive_below(self.pid)
        for signum in signums:
            if self.exit_status is None:
                os.killpg(self.pid, signum)
                time.sleep(after_s)
        status = self._wait_for_end(PATIENCE_S)
        if left := processes.wait_until_gone(below, patience(_RUNS_SAVE_WITHIN_S)):
            raise NotRecoveredError(f"processes {sorted(left)} have outlived the sweep")
        self.grid.check()
        for watch in living if saves else []:
            watch.check_end()
        frames = sum(watch.env_steps - watch.env_steps_saved() for watch in living)
        self._lost = (frames, sum(watch.plan.num_actors for watch in living))
        return status

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    # Plumbing

    def _living(self) -> list[RunWatch]:
        """Those that have been seen to train, and still go on."""
        return [watch for watch in self._watches.values() if watch.exit_status is None]

    def _trains_on(self, name: str, pid: int) -> bool:
        """False where it has ended in the meantime."""
        log = self.grid.directory / f"{name}.log"
        try:
            watch = self._watches.get(name)
            if watch is not None and watch.pid == pid:
                watch.wait_for_progress()
                return True
            words = _command_line(pid)
            flags = words[words.index("sf") + 1 :]
            said_before = log.stat().st_size
            beginning = self.grid.beginning(name, flags)
            self._watches[name] = RunWatch(
                flags, beginning, pid, log, lambda: None if processes.is_alive(pid) else 0, said_before
            )
        except (EndedError, ValueError):  # ValueError: it has no command line any more
            return False
        return True

    def _wait_for_end(self, within_s: float) -> int:
        try:
            return self._process.wait(max(within_s, patience(within_s)))
        except subprocess.TimeoutExpired:
            raise NotRecoveredError(f"the sweep did not end within {within_s:g} s") from None


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []
