"""A run that goes on, seen from outside.

What the run says of itself need not be believed: its tables of slots and counters are mapped through /proc, and its
processes are looked up there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faults import bookkeeping, processes
from faults.bookkeeping import NotRecoveredError
from faults.machine import patience

from sf.run.children.roles.table import counts
from sf.run.memory import rows_by_role
from sf.run.plan import Plan
from sf.run.planning import make_plan
from sf.shared.counters import COUNTS, counter_fields
from sf.shared.rows import slot_fields
from sf.shared.slots import FREE, TRAINING
from sf.storage.run_dir import RunDir
from sf.system.arrays import Field, SharedArrays
from sf.tools.commands import cli

PATIENCE_S = 180.0  # what has not happened by then will not happen
# Where they are always the same. One that is truncated has a row more, for its final observation.
_STEPS_OF_AN_EPISODE = {"toy_faulty": 8, "reach:Reach": 17, "toy_match_rps": 1}
_LOOK_EVERY_S = 0.002
_LOOK_AT_PROCESSES_EVERY_S = 0.1


class EndedError(NotRecoveredError):
    """The run ended though nobody had ended it."""


@dataclass(frozen=True)
class Beginning:
    """What a run of these flags goes on with; taken before it starts."""

    plan: Plan
    run_dir: RunDir
    first_step: int
    metrics_before: int  # bytes of earlier sessions in this directory

    @classmethod
    def of(cls, flags: list[str]) -> Beginning:
        try:
            config = cli.parse(flags)
        except SystemExit:
            raise NotRecoveredError("its flags are refused: see the output above") from None
        plan, run_dir = make_plan(config), RunDir.at(config.run.train_dir, config.run.experiment_name)
        size = run_dir.metrics.stat().st_size if run_dir.metrics.exists() else 0
        return cls(plan, run_dir, env_steps_saved(plan, run_dir), size)


def env_steps_saved(plan: Plan, run_dir: RunDir) -> int:
    """Of the newest checkpoints that are whole, of all policies; 0 where there is none."""
    num = plan.num_policies
    return sum(bookkeeping.steps_saved(run_dir.checkpoints_of(policy_id, num)) for policy_id in range(num))


class RunWatch:
    """exit_status: of the parent process; None while it lives. said_before: bytes of earlier sessions in the log."""

    def __init__(
        self,
        flags: list[str],
        beginning: Beginning,
        pid: int,
        log: Path,
        exit_status: Callable[[], int | None],
        said_before: int = 0,
    ) -> None:
        self.flags = flags
        self.plan, self.run_dir, self.first_step = beginning.plan, beginning.run_dir, beginning.first_step
        self.pid = pid
        self.log = log
        self._metrics_before = beginning.metrics_before
        self._exit_status = exit_status
        self._said_before = said_before
        self._map_tables()
        self.wait_until(self._all_children_live, "all processes run")
        self.wait_for_progress()

    def _map_tables(self) -> None:
        self._rows = rows_by_role(counts(self.plan))
        fields = counter_fields(sum(map(len, self._rows.values())))
        self._counters = self._attach("sf-counters", fields)
        self._slots = self._attach(
            "sf-slots", slot_fields(self.plan.spec, self.plan.num_slots, self.plan.config.rollout)
        )
        self._seen = {name: self._counters[name].copy() for name in COUNTS}

    # What it does

    @property
    def exit_status(self) -> int | None:
        return self._exit_status()

    def names(self) -> list[str]:
        """Of all children, as they should be."""
        return sorted(f"{role}-{idx}" for role, rows in self._rows.items() for idx in range(len(rows)))

    def pid_of(self, name: str) -> int | None:
        """None while none, or more than one, is alive: the dead may take a moment to go."""
        pids = [process.pid for process in processes.children_of_run(self.pid) if process.name == name]
        return pids[0] if len(pids) == 1 else None

    def output(self) -> str:
        return self.log.read_bytes()[self._said_before :].decode(errors="replace")

    def num_replaced(self) -> int:
        return self.output().count("Replaced")

    def metrics(self) -> list[dict[str, Any]]:
        """The records that this session has written."""
        return [bookkeeping.parse(line, self.run_dir.metrics) for line in self._lines_of_metrics()]

    def forget_metrics(self) -> None:
        """The file was removed."""
        self._metrics_before = 0

    def metric(self, name: str) -> float:
        """The latest value; 0 before the first."""
        for line in reversed(self._lines_of_metrics()):
            record = bookkeeping.parse(line, self.run_dir.metrics)
            if name in record:
                return record[name]
        return 0.0

    def checkpoints(self) -> list[Path]:
        """Returns those of the first policy, oldest first."""
        return bookkeeping.checkpoints_in(self.run_dir.checkpoints_of(0, self.plan.num_policies))

    def env_steps_saved(self) -> int:
        """Of the newest checkpoints that are whole, of all policies; 0 where there is none."""
        return env_steps_saved(self.plan, self.run_dir)

    # Waiting

    def wait_until(self, holds: Callable[[], object], what: str) -> None:
        """Raises EndedError where the run ends first, NotRecoveredError where patience does."""
        self._wait(holds, what, _LOOK_AT_PROCESSES_EVERY_S)

    def wait_for_pid(self, name: str, other_than: int | None = None) -> int:
        """Of the one process of this name, once it is alive and is not that one. Raises as `wait_until` does."""
        pids: list[int] = []

        def there_is_one() -> bool:
            pid = self.pid_of(name)  # looked up once: a process that forks is two for a moment
            pids.extend(() if pid in (None, other_than) else (pid,))
            return bool(pids)

        self.wait_until(there_is_one, f"there is {'another' if other_than else 'a'} {name}")
        return pids[0]

    def wait_for_progress(self) -> None:
        """Until every slot has been used again, and each learner has trained on two more batches.

        A slot that nobody owns, or that two own, cannot go round: each would wait for the other.
        """
        last = self._slots["state"].copy()
        has_moved = np.zeros(len(last), bool)
        samples = 2 * self.plan.config.slots_per_iteration * self.plan.config.rollout
        wanted = self._trained_by_policy() + samples

        def all_goes_round() -> bool:
            has_moved[self._slots["state"] != last] = True
            return bool(has_moved.all() and (self._trained_by_policy() >= wanted).all())

        try:
            self._wait(all_goes_round, "training goes on", _LOOK_EVERY_S)
        except EndedError:
            raise
        except NotRecoveredError as error:
            stuck = {int(s): int(self._slots["state"][s]) for s in np.flatnonzero(~has_moved)}
            raise NotRecoveredError(f"{error}; slots that did not move, with their state: {stuck}") from None
        self.check()

    def wait_for_record(self) -> None:
        """Wait until the metrics hold what has happened until now."""
        num_records = len(self._lines_of_metrics())
        self.wait_until(lambda: len(self._lines_of_metrics()) > num_records, "metrics are written")

    def _wait(self, holds: Callable[[], object], what: str, every_s: float) -> None:
        began = time.monotonic()
        while not holds():
            if self.exit_status is not None:
                raise EndedError(f"the run ended with status {self.exit_status} before {what}")
            waited = time.monotonic() - began
            if waited > PATIENCE_S and waited > patience(PATIENCE_S):
                raise NotRecoveredError(f"not within {waited:.0f} s: {what}")
            time.sleep(every_s)

    # Checking

    def check(self) -> None:
        """Raises NotRecoveredError for a wrong table, a counter that fell, samples without a whereabouts, a file that
        is not whole, or a wrong set of processes."""
        state = self._slots["state"].copy()
        if not ((state >= FREE) & (state <= TRAINING)).all():
            raise NotRecoveredError(f"states of slots: {state.tolist()}")
        for name, before in self._seen.items():
            now = self._counters[name].copy()
            if (now < before).any():
                raise NotRecoveredError(f"the counter {name} fell from {before.tolist()} to {now.tolist()}")
            self._seen[name] = now
        # No learner takes what players did that do not learn.
        stepped_before, taken = self.samples_stepped(), self.samples_of_players() + self.samples_trained()
        stepped_after = self.samples_stepped()
        bookkeeping.require_balance(self.plan, stepped_before, taken, stepped_after, self.num_replaced())
        self._check_metrics()
        bookkeeping.require_files_in_order(self.run_dir)
        self.wait_until(self._all_children_live, "there is one process of each name")

    def check_end(self) -> None:
        """After it was asked to end: the files are whole, and the last checkpoint has all that was trained on."""
        bookkeeping.require_files_in_order(self.run_dir)
        saved, known = self.env_steps_saved(), self.env_steps
        if saved != known and "the run resumes from" not in self.output():
            raise NotRecoveredError(f"{known} env steps were trained on, and {saved} are saved")
        if self.plan.config.run.env in _STEPS_OF_AN_EPISODE:
            self._check_episodes(_STEPS_OF_AN_EPISODE[self.plan.config.run.env])

    def _check_episodes(self, steps_of_an_episode: int) -> None:
        """Those that ended are reported or lost; one of each actor may be missing, or too much, for each of these."""
        if "asked to, killed" in self.output():  # with what it had not reported
            return
        summary = bookkeeping.parse(self.run_dir.summary.read_text(), self.run_dir.summary)
        slack = (1 + self.num_replaced() + summary["env_faults"]) * self.plan.num_actors
        bookkeeping.require_episodes(summary, steps_of_an_episode, self.samples_stepped(), slack)

    def _check_metrics(self) -> None:
        records = self.metrics()
        bookkeeping.require_no_fall(records, self.plan.num_policies)
        if records and not self.first_step <= records[-1]["env_steps"] <= self.env_steps:
            raise NotRecoveredError(f"{records[-1]['env_steps']} env steps, after {self.first_step} at the start")

    @property
    def env_steps(self) -> int:
        return self.first_step + self.samples_trained()

    def samples_trained(self) -> int:
        return int(self._trained_by_policy().sum())

    def _trained_by_policy(self) -> np.ndarray:
        """[P]"""
        return self._counters["steps"][list(self._rows["learner"])].copy()

    def samples_stepped(self) -> int:
        return int(self._counters["steps"][list(self._rows["rollout"])].sum())

    def samples_of_players(self) -> int:
        return int(self._counters["player_steps"][list(self._rows["rollout"])].sum())

    def _all_children_live(self) -> bool:
        return sorted(process.name for process in processes.children_of_run(self.pid)) == self.names()

    # Plumbing

    def _lines_of_metrics(self) -> list[str]:
        return bookkeeping.whole_lines(self.run_dir.metrics, self._metrics_before)

    def _attach(self, name: str, fields: list[Field]) -> SharedArrays:
        """Map the shared memory of the run that has this name."""
        self.wait_until(lambda: memory_called(name, self.pid), f"it has {name}")
        return SharedArrays(fields, os.open(memory_called(name, self.pid)[0], os.O_RDWR))


def memory_called(name: str, pid: int) -> list[Path]:
    """Shared memory of a process whose name begins so, where it has its size already."""
    found = []
    with suppress(OSError):  # the process ends
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if os.readlink(fd).startswith(f"/memfd:{name}") and fd.stat().st_size:
                    found.append(fd)
    return found
