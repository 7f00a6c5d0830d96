"""`sf-sweep`: every combination of some flags, with several seeds, as many at once as the machine has room for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.box import SIMPLE
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sf.config.trust import TRUST, require_trusted
from sf.metrics.display.console import OutputConsole
from sf.metrics.readable import four_digits, number
from sf.storage import run_lock
from sf.storage.run_dir import RunDir
from sf.system.messages import said_to
from sf.system.processes.stopping import caught_signals
from sf.tools.commands import cli
from sf.tools.report.curves import PLUS_MINUS
from sf.tools.report.groups import shown
from sf.tools.sweep.grid import SweepRun, read_sweep
from sf.tools.sweep.launchers.launcher import LaunchFlags, make_launcher
from sf.tools.sweep.results import Result, over_seeds, points, require_same_settings, with_ends, write_csv
from sf.tools.sweep.runner import SweepRunner
from sf.tools.sweep.sweep_dir import make_directory, require_no_run

if TYPE_CHECKING:
    from sf.config import Config

_COLUMNS = ("env_steps", "mean_return", "eval/mean_return", "env_frames_per_second")
_NEW_SWEEP = "rename the file, which begins a new sweep, or remove that directory, so that the run begins anew"
_WIDTH_OF_FILES = 160  # columns, where the output is no terminal


@dataclass(frozen=True)
class SweepFlags(LaunchFlags):
    """What to run, and how many at once."""

    sweep: tyro.conf.Positional[Path]
    """A YAML file with flags, grid and seeds: see docs/sweeps.md."""


def main() -> None:
    """Run what is not done yet; end with 0, 1 where a run is not done, 2 after a user's mistake, 128 + the signal."""
    flags = cli.parse_flags(
        SweepFlags,
        "sf-sweep",
        "Train with every combination of the given flags and seeds. Example: sf-sweep sweep.yaml",
    )
    with cli.exit_status():
        raise SystemExit(_sweep(flags))


def _sweep(flags: SweepFlags) -> int:
    directory = flags.train_dir / flags.sweep.stem
    require_no_run(directory, flags.sweep)
    runs = read_sweep(flags.sweep)
    for run in runs:
        require_trusted(run.flags, flags.sweep, flags.trust)
    if flags.trust:
        runs = [run.with_flags(**{TRUST: True}) for run in runs]
    configs = _configured(runs, directory, flags.sweep)
    for run, config in zip(runs, configs, strict=True):
        require_same_settings(run, config, RunDir(directory / run.name), _NEW_SWEEP)
    runs = [with_ends(run, config, RunDir(directory / run.name)) for run, config in zip(runs, configs, strict=True)]
    launcher = make_launcher(flags, configs)
    places = min(launcher.places, len(runs))
    _require_ends(flags.sweep, runs, configs, places)
    runs = [run.with_flags(num_workers=num) for run, num in zip(runs, launcher.workers, strict=True)]
    if flags.dry_run:
        for run in runs:
            print(shlex.join(["sf-train", *run.arguments(directory)]))
        return 0
    launcher.require()
    console = OutputConsole.of_width(_WIDTH_OF_FILES)
    say = console.say
    with said_to(say), run_lock.held(directory, flag="train_dir"), caught_signals() as signals:
        make_directory(directory)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            complain = cache(say)  # each sentence once

            def show(results: Sequence[Result]) -> None:
                try:
                    write_csv(directory / "results.csv", results)
                except OSError as error:  # the runs go on, and the next attempt may succeed
                    complain(f"results.csv cannot be written ({error})")
                if console.is_terminal:
                    with suppress(OSError):  # the terminal is gone
                        live.update(_progress(results), refresh=True)

            launcher.open(directory, places, say)
            runner = SweepRunner(runs, directory, launcher, say, show)
            say(f"{len(runs)} runs in {directory}, {places} at once")
            runner.run(signals)
        results = runner.results
        say(results_table(results))
        say(PLUS_MINUS)
        say(f"every number of every run: {directory / 'results.csv'}")
        if signals.first is not None:
            say(f"the same command goes on: {shlex.join(['sf-sweep', *sys.argv[1:]])}")
            return 128 + signals.first
        return int(any(result.state != "done" for result in results))


def _configured(runs: Sequence[SweepRun], directory: Path, sweep: Path) -> list[Config]:
    """The configuration of each run; the seeds of a combination share one, which takes a moment to make."""
    of_points: dict[str, Config] = {}
    for run in runs:
        if run.point_name not in of_points:
            of_points[run.point_name] = run.configured(directory, f"{sweep}, {run.name}")
    return [of_points[run.point_name].replace(seed=run.seed, experiment=run.name) for run in runs]


def _require_ends(sweep: Path, runs: Sequence[SweepRun], configs: Sequence[Config], places: int) -> None:
    """Raises ValueError where a run has no end, and others wait for its place."""
    for run, config in zip(runs, configs, strict=True):
        of_run = config.run
        has_end = of_run.ends_by_steps or of_run.ends_by_seconds or of_run.stop_at_return is not None
        if not has_end and places < len(runs):
            raise ValueError(
                f"{sweep}: {run.name} has no end, and the sweep more runs than the {places} at once: set "
                "train_for_env_steps under flags"
            )


def _progress(results: Sequence[Result]) -> Table:
    """A row a run that goes on."""
    counts = {state: sum(r.state == state for r in results) for state in ("done", "failed", "stopped", "waiting")}
    table = Table(box=SIMPLE, title=", ".join(f"{num} {state}" for state, num in counts.items()), title_justify="left")
    for heading in ("running", *_COLUMNS):
        table.add_column(heading, justify="left" if heading == "running" else "right", overflow="fold")
    for r in results:
        if r.state == "running":
            table.add_row(Text(r.run.name), *(number(r.record.get(name)) for name in _COLUMNS))
    return table


def results_table(results: Sequence[Result]) -> Table:
    """A row a combination, best first: means over the seeds that are done, ± half of their interval.

    From 80 columns on all of it can be read: what does not fit goes on in the next line.
    """
    table = Table(box=SIMPLE, pad_edge=False)
    names = [name for name in _COLUMNS if over_seeds(results, name)]
    table.add_column("combination", overflow="fold")
    table.add_column("done", justify="right")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for point, of_point in sorted(points(results), key=lambda item: -_score(item[1])):
        num_done = sum(r.state == "done" for r in of_point)
        cells = []
        for name in names:
            s = over_seeds(of_point, name)
            cells.append("-" if s is None else four_digits(s[0]) + ("" if isnan(s[1]) else f" ± {four_digits(s[1])}"))
        combination = ", ".join(f"{name} {shown(value)}" for name, value in point.items())
        table.add_row(Text(combination), f"{num_done} of {len(of_point)}", *cells)
    return table


def _score(results: Sequence[Result]) -> float:
    s = over_seeds(results, "mean_return")
    return float("-inf") if s is None else s[0]
