"""One of the processes of a campaign that hurt runs side by side: it takes turns, and says what came of each fault."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import NamedTuple

from faults import machine, processes, tasks
from faults.bookkeeping import NotRecoveredError
from faults.kinds.fault import Fault
from faults.outcomes import Outcome
from faults.session import Session
from faults.sweeps import SweepSession

from sf.system.processes.creator import die_with_creator

_GONE_WITHIN_S = 10.0
_START = "start of a run"  # where no fault has happened yet
_LOOK_EVERY_S = 0.05
_PAUSE_S = 2.0  # at most, before a fault: it comes at any moment


class Turn(NamedTuple):
    """Some faults in a row of one run."""

    task: str
    faults: Sequence[Fault]


_Running = Session | SweepSession


def shard(idx: int, turns: Iterable[Turn], until: float, connection: Connection, directory: Path, seed: str) -> None:
    """Take the turns, and send an outcome for each fault. until: time.monotonic(), no new fault after that."""
    die_with_creator()
    machine.adopt_orphans()
    is_own = machine.have_own_shared_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the campaign says when to end
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    directory.mkdir(parents=True, exist_ok=True)
    shared_before = set() if is_own else machine.shared_memory()
    campaign = _Campaign(idx, directory, Random(seed), connection.send, shared_before, time.monotonic())
    for turn in turns:
        if time.monotonic() >= until:
            return
        campaign.take(turn, until)


class _Campaign:
    """shared_before: files in /dev/shm that are of no run here."""

    def __init__(
        self,
        idx: int,
        directory: Path,
        rng: Random,
        note: Callable[[Outcome], None],
        shared_before: set[Path],
        began: float,
    ) -> None:
        self._idx = idx
        self._directory = directory
        self._rng = rng
        self._note = note
        self._shared_before = shared_before
        self._began = began
        self._flags = {task: tasks.varied(task, rng) for task in sorted(tasks.TASKS)}
        self._log_numbers = count()

    def take(self, turn: Turn, until: float) -> None:
        """Ends with no run alive."""
        task = turn.task
        running: _Running | None = None
        what, began = _START, time.monotonic()
        try:
            for fault in turn.faults:
                if time.monotonic() >= until:
                    break
                if running is None or running.exit_status is not None:
                    what, began = _START, time.monotonic()
                    if running is not None:
                        running.finish()
                    running = self._start(task)
                time.sleep(self._rng.uniform(0.0, _PAUSE_S))
                what, began = fault.name, time.monotonic()
                running, outcome = self._recover(task, running, fault)
                self._note(outcome)
            what, began = "end of a turn", time.monotonic()
            if running is not None:
                running.finish()
            self._require_nothing_left()
        except Exception as error:
            self._fail(task, what, time.monotonic() - began, error)
        finally:
            if running is not None:
                running.kill()

    def _recover(self, task: str, running: _Running, fault: Fault) -> tuple[_Running, Outcome]:
        began = time.monotonic()
        before = running.losses()
        fault.do(running, self._rng)
        if running.exit_status is None:
            running.wait_for_progress()
            seconds, to_end = time.monotonic() - began, None
            running.wait_for_record()
            lost = tuple(now - then for now, then in zip(running.losses(), before, strict=True))
        else:
            to_end = time.monotonic() - began
            self._require_nothing_left()
            lost = running.losses_with_the_end()
            running = self._start(task)
            seconds = time.monotonic() - began
        return running, self._outcome(task, fault.name, seconds, to_end, lost, None)

    def _start(self, task: str) -> _Running:
        self._log = self._directory / f"{next(self._log_numbers):03}-{task}.log"
        if task == "sweep":
            return SweepSession(self._directory, self._log)
        run_flags = tasks.flags(task, self._directory, **self._flags[task])
        return Session(run_flags, self._log, tasks.folder(task))

    def _fail(self, task: str, fault: str, seconds: float, error: Exception) -> None:
        is_found = isinstance(error, NotRecoveredError)
        broken = str(error) if is_found else f"the campaign itself failed: {traceback.format_exc()}"
        if self._log.exists():  # the run may not have come to begin it
            print(self._log.read_text(errors="replace")[-5000:], flush=True)
        self._note(self._outcome(task, fault, seconds, None, (0, 0), broken))
        self._directory = self._directory / "after"  # what it left may be broken
        self._directory.mkdir()

    def _outcome(
        self, task: str, fault: str, seconds: float, to_end: float | None, lost: Sequence[int], broken: str | None
    ) -> Outcome:
        at_s, load = time.monotonic() - self._began, os.getloadavg()[0]
        return Outcome(task, fault, seconds, to_end, lost[0], lost[1], broken, self._idx, round(at_s, 1), load)

    def _require_nothing_left(self) -> None:
        """Where /dev/shm is shared, files that come and go are those of others on this machine: what is left stays."""
        began = time.monotonic()
        while left := processes.alive_below(os.getpid()):
            if time.monotonic() - began > machine.patience(_GONE_WITHIN_S):
                raise NotRecoveredError(f"left behind: processes {sorted(left)}")
            time.sleep(_LOOK_EVERY_S)
        began = time.monotonic()
        shared = processes.orphaned_memory(self._shared_before)  # not earlier: a process that ends still has it mapped
        while shared:
            if time.monotonic() - began > machine.patience(_GONE_WITHIN_S):
                raise NotRecoveredError(f"left behind: memory {sorted(map(str, shared))}")
            time.sleep(_LOOK_EVERY_S)
            shared &= processes.orphaned_memory(self._shared_before)
