"""Reads the results of the runs of a sweep, and compares their settings."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sf.config import Config
from sf.envs.errors import UsageError
from sf.storage import checkpoint_names
from sf.storage.run_dir import RunDir, write_atomically
from sf.storage.run_records import latest_record, not_undone, numbers, read_records, settled_means
from sf.tools.report.curves import mean_over_runs
from sf.tools.report.groups import NOT_THE_EXPERIMENT, shown
from sf.tools.sweep.grid import SweepRun

ENDS = ("train_for_env_steps", "train_for_env_frames", "train_for_seconds", "stop_at_return")
# Between two starts of a sweep: it may go on with other ends, on another machine, watched in another way.
_MAY_CHANGE = NOT_THE_EXPERIMENT - {"config", "seed"} | {"num_workers"}

State = Literal["waiting", "running", "done", "stopped", "failed"]


@dataclass(frozen=True)
class Result:
    """A run and what it has written: its summary with the latest of all other numbers, or while it goes on the latest
    record."""

    run: SweepRun
    state: State
    record: Mapping[str, Any]


def read_result(run: SweepRun, run_dir: RunDir, state: State) -> Result:
    """A file that is not there, or just being written, counts as empty.

    Where a run was resumed shortly before its end, the means are those of the latest record over enough episodes.
    """
    if state == "running":
        return Result(run, state, numbers(latest_record(run_dir)))
    summary, records = numbers(run_dir.saved_summary() or {}), _records(run_dir.metrics)
    latest = {name: value for record in records for name, value in record.items()}
    if latest.get("env_steps", -1) > summary.get("env_steps", -1):  # it was killed before it wrote its summary
        summary |= records[-1]
    record = {**latest, **summary}
    flags = {**Config().flat(), **(run_dir.saved_flags() or {})}
    return Result(run, state, record | settled_means([*records, summary], flags))


def files_seen(run_dir: RunDir) -> tuple[tuple[int, int] | None, ...]:
    """Size and time of each file that `read_result` reads; None where it is not there. The same: the same result."""
    return tuple(map(_seen, (run_dir.metrics, run_dir.summary, run_dir.config)))


def require_same_settings(run: SweepRun, config: Config, run_dir: RunDir, advice: str) -> None:
    """Raises UsageError if the run that is there was trained with other settings than its flags come to today.

    config: what the flags of the run come to. advice: says what to do then.
    """
    saved, today = run_dir.saved_flags() or {}, config.flat()
    may_change = _MAY_CHANGE if "config" in run.flags else _MAY_CHANGE | {"config"}  # its values are compared anyway
    for name in (name for name in today if name in saved and name not in may_change):
        before = tuple(saved[name]) if isinstance(saved[name], list) else saved[name]
        if before != today[name]:
            raise UsageError(
                f"{run_dir.path} was trained with {name} {shown(before)}, and its flags now say {shown(today[name])}: "
                f"{advice}"
            )


def with_ends(run: SweepRun, config: Config, run_dir: RunDir) -> SweepRun:
    """The same with the ends that the run which is there has otherwise: a resumed run keeps those that nobody names.

    config: what the flags of the run come to.
    """
    saved, today = run_dir.saved_flags() or {}, config.flat()
    return run.with_flags(**{name: today[name] for name in ENDS if name in saved and saved[name] != today[name]})


def is_done(run: SweepRun, run_dir: RunDir) -> bool:
    """Returns whether the run has ended by itself, and not before what is its end today.

    A run that was stopped or killed just after it had saved its last step has ended as well: it cannot go on.
    """
    summary, saved = run_dir.saved_summary() or {}, run_dir.saved_flags() or {}
    ends_the_same = all(name not in ENDS or saved.get(name) == value for name, value in run.flags.items())
    if summary and summary.get("stopped_by") in (None, "stop_at_return") and ends_the_same:
        return True
    flags = {**saved, **run.flags}
    written = numbers(summary)
    reached = {
        "train_for_env_steps": _saved_env_steps(run_dir, saved.get("num_policies", 1)),
        "train_for_env_frames": written.get("env_frames", -1),
        "train_for_seconds": written.get("seconds", -1),
    }
    return any(flags.get(name) is not None and value >= flags[name] for name, value in reached.items())


def _saved_env_steps(run_dir: RunDir, num_policies: int) -> int:
    """Returns the env steps of the latest checkpoints of all policies; -1 if one has none."""
    directories = [run_dir.checkpoints_of(policy_id, num_policies) for policy_id in range(num_policies)]
    files = [next(iter(checkpoint_names.newest_first(directory)), None) for directory in directories]
    return -1 if None in files else sum(checkpoint_names.env_steps(file) for file in files if file is not None)


def points(results: Sequence[Result]) -> list[tuple[Mapping[str, Any], list[Result]]]:
    """The results by the combination of the grid, all seeds of one together."""
    found: dict[str, tuple[Mapping[str, Any], list[Result]]] = {}
    for result in results:
        found.setdefault(result.run.point_name, (result.run.point, []))[1].append(result)
    return list(found.values())


def over_seeds(results: Sequence[Result], name: str) -> tuple[float, float] | None:
    """Returns the mean over the seeds that are done and have the number `name`, and half of its 95 % confidence
    interval, as `sf-plot` draws it; None if there are none."""
    values = [r.record[name] for r in results if r.state == "done" and r.record.get(name) is not None]
    if not values:
        return None
    mean, error, _ = mean_over_runs(np.array(values, dtype=np.float64)[:, None])
    return float(mean[0]), float(error[0])


def write_csv(path: Path, results: Sequence[Result]) -> None:
    """A row a run: its values of the grid, its seed and state, and every number that it has written."""
    grid = list(results[0].run.point)
    names = sorted({name for r in results for name, value in r.record.items() if isinstance(value, int | float)})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["run", *grid, "seed", "state", *names])
    for r in results:
        values = [r.run.point[name] for name in grid]
        writer.writerow([r.run.name, *values, r.run.seed, r.state, *(r.record.get(name, "") for name in names)])
    write_atomically(path, text.getvalue().encode())


def _seen(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _records(path: Path) -> Sequence[Mapping[str, float]]:
    try:
        return not_undone(read_records(path)[0])
    except OSError:
        return []
