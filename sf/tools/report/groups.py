"""Groups runs that are seeds of one experiment, and names the groups. Pure."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sf.config import Config
from sf.storage.text_files import plain
from sf.tools.report.runs import Run

NOT_THE_EXPERIMENT = frozenset(
    {
        "seed", "experiment", "train_dir", "restart_behavior", "config",
        "device", "compile", "learner_threads", "gradient_workers", "set_workers_cpu_affinity",
        "train_for_env_steps", "train_for_env_frames", "train_for_seconds", "stop_at_return",
        "save_every_sec", "keep_checkpoints", "save_milestones_sec", "summaries_every_sec",
        "worker_timeout_s", "max_restarts", "restart_window_s",
        *dataclasses.asdict(Config().evaluation), *dataclasses.asdict(Config().watch),
    }
)  # fmt: skip
"""Settings in which the seeds of one experiment may differ: they say where, how long and how watched it runs."""


_FINAL = ("exploration_loss_coeff_final", "lr_adaptive_max_final")
_EXTRA = "exploration_loss_coeff_extra"


@dataclass(frozen=True)
class Group:
    """Runs of the same settings."""

    label: str  # what tells them from the other groups; empty where there are no others
    runs: tuple[Run, ...]


def group(runs: Sequence[Run], by: Sequence[str] = ()) -> list[Group]:
    """Put runs of the same settings together, in the order of their first run.

    by: the settings that have to be the same; of `experiment` the directory, as runs in two folders may have one name.
    Default: all but `NOT_THE_EXPERIMENT`. The number of steps counts, too, where the learning rate or the entropy bonus
    changes towards the end. Raises ValueError for a name that is no setting.
    """
    known = {name for run in runs for name in run.flags}
    for name in by:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "the names are those in config.yaml"
            raise ValueError(f"group_by has {name}, which these runs do not have as a setting: {hint}")
    members: dict[tuple[str, ...], list[Run]] = {}
    names = list(by) or sorted(known)
    for run in runs:
        members.setdefault(tuple(_key(run, name, is_named=bool(by)) for name in names), []).append(run)
    differing = [name for idx, name in enumerate(names) if len({key[idx] for key in members}) > 1]
    firsts = [group_runs[0] for group_runs in members.values()]
    columns = [
        names_apart(firsts) if name == "experiment" else told_apart([run.flags.get(name) for run in firsts])
        for name in differing
    ]
    labels = [_label(differing, [column[idx] for column in columns]) for idx in range(len(firsts))]
    return [Group(label, tuple(group_runs)) for label, group_runs in zip(labels, members.values(), strict=True)]


def names_apart(runs: Sequence[Run]) -> list[str]:
    """The name of each run; below the folder that all are in, where two have one name."""
    names = [run.directory.path.name for run in runs]
    if len(set(names)) < len(names):
        paths = [run.directory.path for run in runs]
        names = [os.path.relpath(path, os.path.commonpath(paths)) for path in paths]
    return [plain(name) for name in names]


def _key(run: Run, name: str, is_named: bool) -> str:
    counts = is_named or name not in NOT_THE_EXPERIMENT
    if name == "train_for_env_steps" and _is_scheduled(run):
        counts = True
    if name == "experiment" and is_named:
        return str(run.directory.path)
    value = run.flags.get(name)
    if type(value) is int and abs(value) < 2**53:
        value = float(value)  # 1 in YAML is 1.0
    return json.dumps(value, default=str, skipkeys=True) if counts else ""


def _is_scheduled(run: Run) -> bool:
    """Returns whether a setting changes up to the end of the run."""
    falls = run.flags.get("lr_schedule") in ("linear", "cosine", "auto")
    return falls or bool(run.flags.get(_EXTRA)) or any(run.flags.get(final) is not None for final in _FINAL)


def _label(names: Sequence[str], values: Sequence[str]) -> str:
    if list(names) == ["experiment"]:
        return values[0]
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def told_apart(values: Sequence[Any]) -> list[str]:
    """Settings as a user would type them, with all digits where six do not tell two of them apart."""
    short, exact = [shown(value) for value in values], [shown(value, is_exact=True) for value in values]
    return short if len(set(short)) == len(set(exact)) else exact


def shown(value: Any, is_exact: bool = False) -> str:
    """A setting as a user would type it. is_exact: with all digits, in place of six."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return repr(value) if is_exact and float(short) != value else short
    if isinstance(value, list | tuple):
        return " ".join(shown(item, is_exact) for item in value)
    return "none" if value is None else plain(str(value))
