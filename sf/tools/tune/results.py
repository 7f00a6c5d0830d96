"""Shows what a search found: a table, the best as a preset, every trial as a row, and the importance of each flag."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import Any

import optuna
import yaml
from optuna.trial import FrozenTrial, TrialState
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sf.config import Config
from sf.metrics.readable import number
from sf.storage.run_dir import NOT_SAVED, write_atomically
from sf.tools.sweep.grid import SweepRun
from sf.tools.tune import study as studies
from sf.tools.tune.search import Search

_BEST_SHOWN = 10
STATES = {
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "under way",
    TrialState.WAITING: "waiting",
}
UNFIT = "not run"  # its flags do not go together


def ranked(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that were not cut short, the best first."""
    sign = -1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1
    return sorted(studies.completed(study), key=lambda trial: sign * (trial.value or 0.0))


def table(study: optuna.Study, search: Search) -> Table:
    """The best trials, each with what it chose."""
    counts = dict.fromkeys((*STATES.values(), UNFIT), 0)
    for trial in study.get_trials(deepcopy=False):
        counts[_state(trial)] += 1
    title = ", ".join(f"{num} {state}" for state, num in counts.items() if num)
    out = Table(box=SIMPLE, pad_edge=False, title=title, title_justify="left")
    out.add_column("trial", justify="right")
    out.add_column(Text(search.objective), justify="right", overflow="fold")
    for name in search.space:
        out.add_column(Text(name), justify="right", overflow="fold")
    for trial in ranked(study)[:_BEST_SHOWN]:
        values = [trial.params[name] for name in search.space]
        chosen = [Text(f"{value:.3g}" if isinstance(value, float) else str(value)) for value in values]
        out.add_row(str(trial.number), number(trial.value), *chosen)
    return out


def write_best(path: Path, study: optuna.Study, search: Search) -> None:
    """A preset of its own with all that the best trial was trained with: `sf-train --config PATH`. Nothing where no
    trial is done.
    """
    best = next(iter(ranked(study)), None)
    if best is None:
        return
    run = search.runs(best.number, search.suggest(optuna.trial.FixedTrial(best.params)))[0]
    seeds = f"seed {search.seeds[0]}" if len(search.seeds) == 1 else f"seeds {', '.join(map(str, search.seeds))}"
    head = (
        f"# Trial {best.number} of {len(study.get_trials(deepcopy=False))}: {search.objective} {best.value:,.4g} "
        f"with {seeds}\n# Flags that are not here had their defaults.\n"
    )
    if not _begins_with(path, head):
        flags = {name: _plain(value) for name, value in _trained_with(search, run, path.parent).items()}
        write_atomically(path, (head + yaml.safe_dump(flags, sort_keys=False)).encode())


def write_csv(path: Path, study: optuna.Study, search: Search) -> None:
    """A row a trial: its state, its value, and what it chose."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["trial", "state", search.objective, *search.space, "failure"])
    for trial in study.get_trials(deepcopy=False):
        chosen = [trial.params.get(name, "") for name in search.space]
        value = "" if trial.value is None else trial.value
        writer.writerow([trial.number, _state(trial), value, *chosen, trial.user_attrs.get("failure", "")])
    write_atomically(path, text.getvalue().encode())


def draw(path: Path, study: optuna.Study, search: Search) -> bool:
    """Draws every trial's value in its order, with the best so far, and the importance of each flag.

    Returns False if there is nothing to draw. Raises ValueError if the file cannot be written. Needs matplotlib.
    """
    done = studies.completed(study)
    if not done:
        return False
    from matplotlib.figure import Figure  # noqa: PLC0415  the command says what to install before it starts

    from sf.tools.report.style import house_style, save  # noqa: PLC0415

    shares = studies.importances(study)
    numbers = [trial.number for trial in done]
    scores = [trial.value or 0.0 for trial in done]
    better = max if study.direction == optuna.study.StudyDirection.MAXIMIZE else min
    names = sorted(shares, key=lambda name: shares[name])
    with house_style():
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        values, bars = figure.subplots(1, 2)
        values.plot(numbers, scores, "o", label="trial")
        values.step(numbers, list(itertools.accumulate(scores, better)), where="post", label="best so far")
        values.set(xlabel="trial", ylabel=search.objective)
        values.legend()
        bars.barh(names, [shares[name] for name in names])
        bars.set_xlabel("importance" if shares else "importance: too few trials to say")
    save(figure, path)
    return True


def _state(trial: FrozenTrial) -> str:
    return UNFIT if studies.is_unfit(trial) else STATES[trial.state]


def _begins_with(path: Path, head: str) -> bool:
    try:
        return path.read_text().startswith(head)
    except (OSError, UnicodeDecodeError):
        return False


def _trained_with(search: Search, run: SweepRun, directory: Path) -> dict[str, Any]:
    """The flags of the file, those that the trial chose, and what its preset set to other values than the defaults."""
    of_a_start = {*NOT_SAVED, "config", "seed"}
    defaults = Config().flat()
    flags = run.configured(directory, f"{directory}, {run.name}").flat()
    named = {name: value for name, value in {**search.flags, **run.point}.items() if name != "config"}
    return {**named, **{n: v for n, v in flags.items() if n not in of_a_start and n not in named and v != defaults[n]}}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
