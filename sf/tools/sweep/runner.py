"""Runs the runs of a sweep, several at a time. One that fails does not keep the others from running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sf.storage.run_dir import RunDir
from sf.system.processes.stopping import Signals
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.launcher import Launcher, Refusals, watch
from sf.tools.sweep.launchers.training_job import ASKED_TO_END
from sf.tools.sweep.results import Result, State, files_seen, is_done, read_result


class SweepRunner:
    """directory: of the sweep. say: prints a sentence. show: is called with all results now and then."""

    def __init__(
        self,
        runs: Sequence[SweepRun],
        directory: Path,
        launcher: Launcher,
        say: Callable[[str], None],
        show: Callable[[Sequence[Result]], None],
    ) -> None:
        self._runs = runs
        self._directory = directory
        self._launcher = launcher
        self._say = say
        self._show = show
        self._read: dict[str, tuple[object, Result]] = {}  # by the name of a run: its files as they were, what they say
        self._refusals = Refusals(launcher, say)
        self._states: dict[str, State] = {
            run.name: "done" if is_done(run, self._run_dir(run)) else "waiting" for run in runs
        }

    @property
    def results(self) -> list[Result]:
        return [self._result(run) for run in self._runs]

    def run(self, signals: Signals) -> None:
        """Run them until all have ended, or a signal."""
        waiting = [run for run in self._runs if self._states[run.name] == "waiting"]
        num_done = len(self._runs) - len(waiting)
        if num_done:
            self._say(f"{num_done} of {len(self._runs)} runs are done already")

        def start_runs() -> bool:
            while waiting and self._launcher.has_place and signals.first is None:
                run = waiting.pop(0)
                if not self._start(run):
                    waiting.append(run)  # the next look begins with another
                    break
            return bool(waiting)

        watch(self._launcher, signals, start_runs, self._end, lambda: self._show(self.results))

    def _run_dir(self, run: SweepRun) -> RunDir:
        return RunDir(self._directory / run.name)

    def _result(self, run: SweepRun) -> Result:
        """Returns the result of the look before, unless the files of the run have changed: most runs are done."""
        run_dir, state = self._run_dir(run), self._state(run)
        seen = files_seen(run_dir)
        before = self._read.get(run.name)
        if before is None or before[0] != seen or before[1].state != state:
            before = self._read[run.name] = seen, read_result(run, run_dir, state)
        return before[1]

    def _state(self, run: SweepRun) -> State:
        state = self._states[run.name]
        return "waiting" if state == "running" and self._launcher.is_queued(run) else state

    def _start(self, run: SweepRun) -> bool:
        """False: not now, since others are under way, or a process of before still saves; it waits for a later look."""
        try:
            done = self._launcher.start(run)
        except OSError as error:
            if self._refusals.may_wait(f"{run.name} waits ({error})"):
                return False
            self._states[run.name] = "failed"
            self._say(f"failed {run.name}: it cannot be started ({error})")
        else:
            self._states[run.name] = "running"
            self._say(f"{done} {run.name}")
        self._refusals.reset()  # the others may wait as long
        return True

    def _end(self, run: SweepRun, status: int, is_stopping: bool) -> None:
        if status == 0:
            self._states[run.name] = "done"
            self._say(f"done {run.name}")
        elif is_stopping or status in ASKED_TO_END:
            self._states[run.name] = "stopped"
            self._say(f"stopped {run.name}")
        else:
            self._states[run.name] = "failed"
            log = self._launcher.log(run)
            self._say(f"failed {run.name} (status {status}): {self._launcher.last_words(run)}; all it said is in {log}")
