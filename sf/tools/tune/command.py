"""`sf-tune`: a search over flags, with Optuna."""

from __future__ import annotations

import dataclasses
import math
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from sf import envs
from sf.config import Config
from sf.config.trust import TRUST, require_trusted
from sf.envs.errors import UsageError
from sf.envs.field_types import checked, require
from sf.metrics.display.console import OutputConsole
from sf.storage import run_lock
from sf.system.machine import extras
from sf.system.messages import said_to
from sf.system.processes.stopping import caught_signals
from sf.tools.commands import cli
from sf.tools.sweep.launchers.launcher import LaunchFlags, make_launcher
from sf.tools.sweep.results import ENDS
from sf.tools.sweep.sweep_dir import make_directory, require_no_run
from sf.tools.tune.search import Search, read_search

if TYPE_CHECKING:
    from sf.tools.sweep.grid import SweepRun
    from sf.tools.sweep.launchers.launcher import Launcher

_WIDTH_OF_FILES = 160  # columns, where the output is no terminal


@dataclass(frozen=True)
class TuneFlags(LaunchFlags):
    """What to search, and how many trials at once."""

    search: tyro.conf.Positional[Path]
    """A YAML file with flags and what to search: see docs/tuning.md."""

    trials: int | None = None
    """Trials in all, those of earlier starts included. Default: what the file says, else 30."""

    seed: int = 0
    """Seed of Optuna's sampler. The runs have seeds of their own, in the file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.trials is None or self.trials >= 1, f"trials is {self.trials}: at least 1")
        require(0 <= self.seed < 2**32, f"seed is {self.seed}: it must be from 0 to {2**32 - 1}")


def main() -> None:
    """Search; end with 0, 1 where no trial came to a result, 2 after a user's mistake, 128 + the signal."""
    flags = cli.parse_flags(TuneFlags, "sf-tune", "Search for good flags with Optuna. Example: sf-tune tune.yaml")
    with cli.exit_status():
        raise SystemExit(_tune(flags))


def _tune(flags: TuneFlags) -> int:
    directory = flags.train_dir / flags.search.stem
    require_no_run(directory, flags.search)
    search = read_search(flags.search)
    fit = _checked(search, directory, flags)
    configs = [config for _, config in fit]
    end = _end(flags.search, configs)
    launcher = make_launcher(flags, [max(configs, key=_num_workers)])
    added = {"num_workers": launcher.workers[0], **({TRUST: True} if flags.trust else {})}
    search = dataclasses.replace(search, added=added, num_trials=flags.trials or search.num_trials)
    if flags.dry_run:
        print(shlex.join(["sf-train", *search.runs(0, fit[0][0].point)[0].arguments(directory)]))
        return 0
    extras.require("tune", "optuna", "matplotlib", purpose="a search")
    if search.sampler == "gp" and find_spec("scipy") is None:
        raise UsageError(f"{flags.search}: the sampler gp needs scipy: pip install scipy, or take the sampler tpe")
    launcher.require()
    return _search(flags, search, directory, end, launcher)


def _search(flags: TuneFlags, search: Search, directory: Path, end: int, launcher: Launcher) -> int:
    from sf.tools.tune import results  # noqa: PLC0415  they need Optuna
    from sf.tools.tune.study import FILE, open_study, rungs  # noqa: PLC0415
    from sf.tools.tune.tuner import Tuner  # noqa: PLC0415

    console = OutputConsole.of_width(_WIDTH_OF_FILES)
    say = console.say
    with said_to(say), run_lock.held(directory, flag="train_dir"), caught_signals() as signals:
        make_directory(directory)
        places = min(launcher.places, search.num_trials * len(search.seeds))
        study = open_study(search, directory, end, flags.seed, places)
        complain = cache(say)  # each sentence once

        def write() -> None:
            try:
                results.write_csv(directory / "trials.csv", study, search)
                results.write_best(directory / "best.yaml", study, search)
            except OSError as error:  # the search goes on, and the next attempt may succeed
                complain(f"the results cannot be written ({error})")

        launcher.open(directory, places, say)
        num = f"{search.num_trials} trials in {directory}, {places} runs at once"
        say(f"{num}; the study is {directory / FILE}")
        Tuner(search, study, directory, rungs(end), launcher, say, write).run(signals)
        say(results.table(study, search))
        try:
            is_drawn = results.draw(directory / "search.png", study, search)
        except ValueError as error:
            is_drawn = False
            say(f"the picture is not drawn: {error}")
        if results.ranked(study):
            say(f"the best as a preset: sf-train --config {directory / 'best.yaml'}")
            if is_drawn:
                say(f"values, and the importance of each flag: {directory / 'search.png'}")
            say(f"every trial: {directory / 'trials.csv'}")
        if signals.first is not None:
            say(f"the same command goes on: {shlex.join(['sf-tune', *sys.argv[1:]])}")
            return 128 + signals.first
        return int(not results.ranked(study))


def _checked(search: Search, directory: Path, flags: TuneFlags) -> list[tuple[SweepRun, Config]]:
    """Returns runs that between them have every bound and choice, with their configurations. Says which cannot run.

    Raises ValueError if none can, or if they would end differently: trials are compared by what they have reached.
    """
    fit: list[tuple[SweepRun, Config]] = []
    refusals: list[str] = []
    trust = {TRUST: True} if flags.trust else {}
    for run in search.examples():
        require_trusted(checked(Config, run.flags, str(flags.search)), flags.search, flags.trust)
        try:
            fit.append((run, run.with_flags(**trust).configured(directory)))
        except ValueError as error:
            refusals.append(f"{flags.search}: {error}")
    if not fit:
        raise ValueError(refusals[0])
    for refusal in refusals:
        print(f"{refusal}: where values do not go together, others are drawn", file=sys.stderr, flush=True)
    for name in ENDS:
        ends = list(dict.fromkeys(getattr(config.run, name) for _, config in fit))
        if len(ends) > 1:
            raise UsageError(
                f"{flags.search}: {name} is {ends[0]} in some runs and {ends[1]} in others, so trials would be "
                "compared after unlike numbers of env steps: set one value under flags"
            )
    return fit


def _num_workers(config: Config) -> float:
    """Infinite where the run takes all cores."""
    num = config.sampler.num_workers
    return math.inf if num == "auto" else num


def _end(path: Path, configs: Sequence[Config]) -> int:
    """Env steps of a run. Raises UsageError where it has no end, or one that depends on its speed alone."""
    run, environment = configs[0].run, configs[0].environment
    if not run.ends_by_steps:
        raise UsageError(
            f"{path}: a run has no end in env steps, by which trials are compared: set train_for_env_steps under flags"
        )
    with redirect_stdout(StringIO()):  # what environments have to say is said by the runs
        return run.target_env_steps(envs.describe(run.env, environment).frameskip)
