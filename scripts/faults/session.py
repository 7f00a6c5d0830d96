"""One `sf-train`, started as a user starts it and watched from outside.

What the run says of itself need not be believed: its tables of slots and counters are mapped through /proc, and its
processes are looked up there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from faults import processes

from sf import checkpoint, cli
from sf.counters import Counters
from sf.memory import Field, SharedArrays
from sf.plan import make_plan
from sf.processes import die_with_creator
from sf.run_dir import RunDir
from sf.slots import FREE, TRAINING, slot_fields

PATIENCE_S = 180.0  # what has not happened by then will not happen
_LOOK_EVERY_S = 0.002
_LOOK_AT_PROCESSES_EVERY_S = 0.1
_NEVER_FALL = (
    "env_steps", "seconds", "episodes", "restarts", "lost_episodes", "lost_frames", "env_faults"
)  # fmt: skip


def _begin() -> None:
    """In the new process, before it becomes the run."""
    die_with_creator()  # a campaign that is killed leaves no run
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # of a campaign under nohup it would inherit to ignore that


class NotRecoveredError(AssertionError):
    """The run did not do what is promised."""


class Session:
    """A run that trains, from `start` to `end`."""

    def __init__(self, flags: list[str], log: Path) -> None:
        config = cli.parse(flags)
        self.flags = flags
        self.plan = make_plan(config)
        self.run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
        self.log = log
        self.first_step = self.env_steps_saved()  # where it begins
        self._records_before = len(self._lines_of_metrics())  # of earlier sessions in this directory
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sf", *flags],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_begin,  # noqa: PLW1509  no threads here
            )
        self.pid = self._process.pid
        try:
            self._map_tables()
            self.wait_until(self._all_children_live, "all processes run")
            self.wait_for_progress()
        except BaseException:
            self.kill()
            raise

    def _map_tables(self) -> None:
        self._first_learner = self.plan.num_workers + self.plan.num_policy_workers
        rows = self._first_learner + self.plan.num_policies + self.plan.num_evaluators
        columns = Counters.allocate(rows).snapshot()
        fields = [Field(name, column.shape, column.dtype) for name, column in columns.items()]
        self._counters = self._attach("sf-counters", fields)
        self._slots = self._attach(
            "sf-slots", slot_fields(self.plan.spec, self.plan.num_slots, self.plan.config.sampler.rollout)
        )
        self._seen = {name: self._counters[name].copy() for name in columns}

    # What it does

    @property
    def exit_status(self) -> int | None:
        return self._process.poll()

    def names(self) -> list[str]:
        """Of all children, as they should be."""
        numbers = {
            "rollout": self.plan.num_workers,
            "policy": self.plan.num_policy_workers,
            "learner": self.plan.num_policies,
            "evaluator": self.plan.num_evaluators,
        }
        return sorted(f"{role}-{idx}" for role, number in numbers.items() for idx in range(number))

    def pid_of(self, name: str) -> int | None:
        """None while none, or more than one, is alive: the dead may take a moment to go."""
        pids = [process.pid for process in processes.children_of_run(self.pid) if process.name == name]
        return pids[0] if len(pids) == 1 else None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def metrics(self) -> list[dict[str, Any]]:
        """The records that this session has written."""
        return [json.loads(line) for line in self._lines_of_metrics()[self._records_before :]]

    def forget_metrics(self) -> None:
        """The file was removed."""
        self._records_before = 0

    def metric(self, name: str) -> float:
        """The latest value; 0 before the first."""
        return next((record[name] for record in reversed(self.metrics()) if name in record), 0.0)

    def checkpoints(self, policy_id: int = 0) -> list[Path]:
        """Oldest first."""
        directory = self.run_dir.checkpoints_of(policy_id, self.plan.num_policies)
        return sorted(directory.glob("checkpoint_*.safetensors"))

    def wait_for_record(self) -> None:
        """Wait until the metrics hold what has happened until now."""
        num_records = len(self.metrics())
        self.wait_until(lambda: len(self.metrics()) > num_records, "metrics are written")

    def env_steps_saved(self) -> int:
        """Of the newest checkpoints that are whole, of all policies; 0 where there is none."""
        return sum(self._env_steps_saved(policy_id) for policy_id in range(self.plan.num_policies))

    def _env_steps_saved(self, policy_id: int) -> int:
        for path in reversed(self.checkpoints(policy_id)):
            with suppress(ValueError):  # not whole
                checkpoint.load(path)
                return checkpoint.env_steps(path)
        return 0

    # Waiting

    def wait_until(self, holds: Callable[[], object], what: str) -> None:
        """Raises NotRecoveredError where the run ends first, or patience does."""
        self._wait(holds, what, _LOOK_AT_PROCESSES_EVERY_S)

    def wait_for_progress(self) -> None:
        """Until every slot has been used again, and each learner has trained on two more batches.

        A slot that nobody owns, or that two own, cannot go round: each would wait for the other.
        """
        last = self._slots["state"].copy()
        has_moved = np.zeros(len(last), bool)
        samples = 2 * self.plan.config.slots_per_iteration * self.plan.config.sampler.rollout
        wanted = self._trained_by_policy() + samples

        def all_goes_round() -> bool:
            has_moved[self._slots["state"] != last] = True
            return bool(has_moved.all() and (self._trained_by_policy() >= wanted).all())

        try:
            self._wait(all_goes_round, "training goes on", _LOOK_EVERY_S)
        except NotRecoveredError as error:
            stuck = {int(s): int(self._slots["state"][s]) for s in np.flatnonzero(~has_moved)}
            raise NotRecoveredError(f"{error}; slots that did not move, with their state: {stuck}") from None
        self.check()

    def wait_for_end(self, patience_s: float = PATIENCE_S) -> int:
        """The exit status."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise NotRecoveredError(f"it did not end within {patience_s:g} s") from None

    def _wait(self, holds: Callable[[], object], what: str, every_s: float) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while not holds():
            if self.exit_status is not None:
                raise NotRecoveredError(f"the run ended with status {self.exit_status} before {what}")
            if time.monotonic() > give_up_at:
                raise NotRecoveredError(f"not within {PATIENCE_S:g} s: {what}")
            time.sleep(every_s)

    # Checking

    def check(self) -> None:
        """Raises NotRecoveredError for a wrong table, a counter that fell, or a wrong set of processes."""
        state = self._slots["state"].copy()
        if not ((state >= FREE) & (state <= TRAINING)).all():
            raise NotRecoveredError(f"states of slots: {state.tolist()}")
        for name, before in self._seen.items():
            now = self._counters[name].copy()
            if (now < before).any():
                raise NotRecoveredError(f"the counter {name} fell from {before.tolist()} to {now.tolist()}")
            self._seen[name] = now
        # Trained twice, a slot would be counted twice. The steps of a loop are counted at its end: not by the dead.
        uncounted = (1 + self.output().count("Replaced")) * self.plan.num_actors
        trained, stepped = self.samples_trained(), self.samples_stepped()
        if trained > stepped + uncounted:
            raise NotRecoveredError(f"{trained} samples trained on, and only {stepped} stepped")
        self._check_metrics()
        self.wait_until(self._all_children_live, "there is one process of each name")

    def _check_metrics(self) -> None:
        records = self.metrics()
        version = [] if self.plan.num_policies > 1 else ["train/policy_version"]  # else the mean of all
        for name in (*_NEVER_FALL, *version):
            values = [record[name] for record in records if name in record]
            if values != sorted(values):
                raise NotRecoveredError(f"{name} fell: {values}")
        if records and not self.first_step <= records[-1]["env_steps"] <= self.env_steps:
            raise NotRecoveredError(f"{records[-1]['env_steps']} env steps, after {self.first_step} at the start")

    @property
    def env_steps(self) -> int:
        return self.first_step + self.samples_trained()

    def samples_trained(self) -> int:
        return int(self._trained_by_policy().sum())

    def _trained_by_policy(self) -> np.ndarray:
        """[P]"""
        return self._counters["steps"][self._first_learner :][: self.plan.num_policies].copy()

    def samples_stepped(self) -> int:
        return int(self._counters["steps"][: self.plan.num_workers].sum())

    def _all_children_live(self) -> bool:
        return sorted(process.name for process in processes.children_of_run(self.pid)) == self.names()

    # The end

    def send_signal(self, signum: int) -> None:
        self._process.send_signal(signum)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """As with Ctrl-Z: none of its processes runs meanwhile."""
        os.killpg(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    # Plumbing

    def _lines_of_metrics(self) -> list[str]:
        try:
            return [line for line in self.run_dir.metrics.read_text().splitlines(keepends=True) if line.endswith("\n")]
        except OSError:
            return []

    def _attach(self, name: str, fields: list[Field]) -> SharedArrays:
        """Map the shared memory of the run that has this name."""
        self.wait_until(lambda: self._memory_called(name), f"it has {name}")
        return SharedArrays(fields, os.open(self._memory_called(name)[0], os.O_RDWR))

    def _memory_called(self, name: str) -> list[Path]:
        found = []
        for fd in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if os.readlink(fd).startswith(f"/memfd:{name}"):
                    found.append(fd)
        return found
