"""Runs the trials of a search, several at a time: asks Optuna for flags, starts runs, prunes, tells what came out."""

from __future__ import annotations

import difflib
import signal
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState

from sf.envs.errors import UsageError
from sf.metrics.readable import number
from sf.storage.run_dir import UNSAVED, RunDir
from sf.storage.run_records import latest_record
from sf.system.processes.stopping import Signals
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.launcher import Launcher, Refusals, watch
from sf.tools.sweep.launchers.training_job import ASKED_TO_END
from sf.tools.sweep.results import is_done, read_result, require_same_settings
from sf.tools.tune import study as studies
from sf.tools.tune.curve import Curve
from sf.tools.tune.search import Search

_MOST_SAMPLED = 10  # trials in a row that cannot run, before one is drawn at random: a sampler may insist
_MOST_UNFIT = 200  # in a row, before the search ends


@dataclass
class _Trial:
    """A trial that is under way. Its runs differ in their seeds."""

    trial: optuna.Trial
    waiting: list[SweepRun]  # not started yet
    curves: Sequence[Curve]  # one a run
    running: list[SweepRun] = field(default_factory=list)
    values: list[float] = field(default_factory=list)  # of the runs that have ended
    num_reported: int = 0  # rungs, those included that have no value
    failure: str | None = None
    is_pruned: bool = False


class Tuner:
    """directory: of the search; each run has one inside. rungs: env steps at which trials are compared. `run` raises
    UsageError where a run is there that was trained with other flags than its trial has, where runs cannot be started
    for long, and where no flags are found that go together.

    say: prints a sentence. show: is called after each look at the runs.
    """

    def __init__(
        self,
        search: Search,
        study: optuna.Study,
        directory: Path,
        rungs: Sequence[int],
        launcher: Launcher,
        say: Callable[[str], None],
        show: Callable[[], None],
    ) -> None:
        self._search = search
        self._study = study
        self._directory = directory
        self._rungs = rungs
        self._launcher = launcher
        self._say = say
        self._show = show
        self._open = [self._opened(trial) for trial in studies.unfinished(study)]
        self._num_asked = studies.num_asked(study)
        self._at_random = optuna.samplers.RandomSampler(seed=self._num_asked)
        self._num_unfit = 0  # trials in a row whose flags do not go together
        self._refusals = Refusals(launcher, say)
        if self._num_asked:
            self._say(f"goes on: {self._num_asked - len(self._open)} trials are over, {len(self._open)} under way")

    def run(self, signals: Signals) -> None:
        """Run trials until there are as many as there shall be, or a signal."""

        def look() -> None:
            if signals.first is None:
                self._prune()
            self._show()

        watch(self._launcher, signals, self._start_runs, self._ended, look)

    def _start_runs(self) -> bool:
        """Start runs where there are places. Returns whether one could not be started now, and waits."""
        while self._launcher.has_place:
            trial = next((trial for trial in self._open if trial.waiting), None)
            if trial is None:
                if self._num_asked >= self._search.num_trials:
                    return False
                trial = self._asked()
                self._num_asked += 1
                self._open.append(trial)
            if len(trial.waiting) == len(trial.curves):  # none has begun, and they differ in their seeds alone
                why_unfit = self._why_unfit(trial.waiting[0])
                if why_unfit is not None:
                    self._tell_unfit(trial, why_unfit)
                    continue
                self._num_unfit = 0
            run = trial.waiting.pop(0)
            self._require_same_settings(run)
            trial.running.append(run)
            if is_done(run, self._run_dir(run)):  # it ended while the search was being ended
                self._ended(run, 0, is_stopping=False)
                continue
            try:
                done = self._launcher.start(run)
            except OSError as error:
                trial.running.remove(run)
                trial.waiting.insert(0, run)
                complaint = f"{run.name} cannot be started ({error})"
                if not self._refusals.may_wait(f"{complaint}: trying again"):
                    raise UsageError(f"{complaint}: fix that, and the same command goes on") from None
                return True
            self._refusals.reset()
            chosen = ", ".join(f"{name} {_short(value)}" for name, value in run.point.items())
            self._say(f"{done} {run.name}: {chosen}")
        return False

    def _asked(self) -> _Trial:
        """A new one, drawn at random where the sampler has chosen what does not go together time and again."""
        if self._num_unfit < _MOST_SAMPLED:
            return self._opened(self._study.ask())
        sampler, self._study.sampler = self._study.sampler, self._at_random
        try:
            return self._opened(self._study.ask())
        finally:
            self._study.sampler = sampler

    def _why_unfit(self, run: SweepRun) -> str | None:
        """Returns what sf-train would say of flags that do not go together."""
        try:
            run.configured(self._directory)
        except ValueError as error:
            return str(error)
        return None

    def _tell_unfit(self, trial: _Trial, why: str) -> None:
        """It is over, and another one takes its place."""
        self._num_unfit += 1
        self._num_asked -= 1
        self._open.remove(trial)
        studies.tell_unfit(self._study, trial.trial, why)
        self._say(f"trial {trial.trial.number}: its values do not go together, so others are drawn ({why})")
        if self._num_unfit == _MOST_UNFIT:
            raise UsageError(f"none of {_MOST_UNFIT} combinations of values can run: {why}")

    def _require_same_settings(self, run: SweepRun) -> None:
        """Raises UsageError if the run that is there is one of another study."""
        run_dir = self._run_dir(run)
        if run_dir.config.is_file():
            advice = f"it belongs to another study, so rename the file of the search, or move {self._directory} away"
            require_same_settings(run, run.configured(self._directory, str(run_dir.path)), run_dir, advice)

    def _opened(self, trial: optuna.Trial) -> _Trial:
        runs = self._search.runs(trial.number, self._search.suggest(trial))
        curves = [
            Curve(self._run_dir(run).metrics, self._search.objective, self._rungs, run.flags.get("num_policies", 1))
            for run in runs
        ]
        told = trial.study.get_trials(deepcopy=False)[trial.number].last_step
        return _Trial(trial, runs, curves, num_reported=0 if told is None else bisect_right(self._rungs, told))

    def _run_dir(self, run: SweepRun) -> RunDir:
        return RunDir(self._directory / run.name)

    def _ended(self, run: SweepRun, status: int, is_stopping: bool) -> None:
        """is_stopping: the search is: a run that ends with any status but 0 has been asked to, or killed."""
        trial = next(trial for trial in self._open if run in trial.running)
        if trial.is_pruned:
            pass  # however it has ended: it may still have been starting up
        elif status == 0:
            record = read_result(run, self._run_dir(run), "done").record
            value = record.get(self._search.objective)
            if value is None:
                trial.failure = self._why_no_value(run, record, is_stopping)
            else:
                trial.values.append(float(value))
        elif trial.failure is not None:
            pass  # it was asked to end, as the trial can tell nothing any more
        elif status == -signal.SIGKILL or status in ASKED_TO_END or is_stopping:
            trial.running.remove(run)
            if status == -signal.SIGKILL and not is_stopping:
                self._say(f"{run.name} was killed, perhaps for want of memory: the same command goes on with it")
            return  # it goes on when the search does
        else:
            words = self._launcher.last_words(run)
            if UNSAVED in words:  # every trial of this start would fail so: this one and the search go on later
                trial.running.remove(run)
                raise UsageError(f"{run.name}: {words}")
            trial.failure = f"{run.name} failed (status {status}): {words}"
        self._is_over(trial, run)

    def _why_no_value(self, run: SweepRun, record: Mapping[str, Any], is_stopping: bool) -> str:
        """Raises UsageError where the first run that ends tells that the objective is misspelt.

        Statistics and evaluations, whose names have a slash, may be there in some runs alone, or come late.
        """
        name = self._search.objective
        if name in latest_record(self._run_dir(run)):
            return f"{run.name} ended without a value of {name}: no episode had ended, or it was infinite or no number"
        near = [] if "/" in name else difflib.get_close_matches(name, record, n=1)
        if near and not is_stopping and not studies.completed(self._study):
            raise UsageError(
                f"objective is {name}, which {run.name} has not recorded: did you mean {near[0]}? Correct it, and "
                f"move {self._directory} away, whose study is one of {name}"
            )
        return f"{run.name} has no {name}: name a number of its metrics.jsonl"

    def _is_over(self, trial: _Trial, run: SweepRun) -> None:
        trial.running.remove(run)
        if trial.failure is not None:
            trial.waiting.clear()
            for other in trial.running:
                self._launcher.interrupt(other)
        if not trial.running and not trial.waiting:
            self._tell(trial)

    def _tell(self, trial: _Trial) -> None:
        name = f"trial {trial.trial.number}"
        if trial.failure is not None:
            trial.trial.set_user_attr("failure", trial.failure)
            self._study.tell(trial.trial, state=TrialState.FAIL)
            self._say(f"{name}: {trial.failure}")
        elif trial.is_pruned:
            self._study.tell(trial.trial, state=TrialState.PRUNED)
            self._say(f"{name}: pruned")
        elif len(trial.values) == len(trial.curves):
            value = float(np.mean(trial.values))
            self._study.tell(trial.trial, value)
            self._say(f"{name}: {self._search.objective} {number(value)}")
        else:
            return  # one of its runs was stopped
        self._open.remove(trial)

    def _prune(self) -> None:
        """Compare what trials have reached by the same env steps, and end those that are not worth going on with."""
        for trial in list(self._open):
            for curve in trial.curves:
                curve.read()
            num_known = min(len(curve.values) for curve in trial.curves)
            while trial.num_reported < num_known and not trial.is_pruned:
                idx = trial.num_reported
                trial.num_reported += 1
                values = [value for curve in trial.curves if (value := curve.values[idx]) is not None]
                if len(values) < len(trial.curves):
                    continue
                trial.trial.report(float(np.mean(values)), self._rungs[idx])
                if trial.trial.should_prune():
                    trial.is_pruned = True
                    trial.waiting.clear()
                    for run in trial.running:
                        self._launcher.interrupt(run)
                    if not trial.running:
                        self._tell(trial)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
