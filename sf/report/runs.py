"""Runs as they lie on disk: their settings and their records, also while they go on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeGuard

from sf.config import Config
from sf.policy_progress import enough_episodes
from sf.run_dir import RunDir

_EPISODE_MEAN = re.compile(r"(policy_\d+/)?(?:(?:mean|std|min|max)_return|mean_episode_\w+|episodes_in_mean|stats/.+)")
_MOVED_ASIDE = re.compile(r"\.old\d+$")  # by --restart_behavior restart


@dataclass(frozen=True)
class Run:
    """A run and what it has recorded so far."""

    directory: RunDir
    flags: Mapping[str, Any]  # all settings; those that its config.yaml does not name are the defaults
    records: Sequence[Mapping[str, Any]]  # `settled`

    @property
    def name(self) -> str:
        return self.directory.path.name

    @property
    def metrics(self) -> list[str]:
        """Names of all numbers in the records, in the order of their first appearance."""
        names: dict[str, None] = {}
        for record in self.records:
            names.update(dict.fromkeys(name for name, value in record.items() if is_number(value)))
        return list(names)

    def matching(self, pattern: str) -> list[str]:
        """The metrics that a name, or a pattern like policy_*/mean_return, stands for; * matches anything but /."""
        return [name for name in self.metrics if name == pattern or _matches(name, pattern)]


def find(paths: Iterable[Path]) -> list[Path]:
    """The run directories that these paths stand for: each a run, or a folder with runs somewhere inside.

    What was moved aside by a restart counts only where it is named itself. Raises ValueError where a path has no run.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inside = [path] if _is_run(path) else _runs_inside(path)
        if not inside:
            raise ValueError(f"{path} is no run and holds none (a run has config.yaml and metrics.jsonl): name others")
        found.update(dict.fromkeys(inside))
    return list(found)


def load_all(paths: Sequence[Path], say: Callable[[str], None]) -> list[Run]:
    """Read the runs that these paths stand for.

    One that is found in a folder and cannot be read is left out, and `say` is told. Raises ValueError where it is named
    itself, or no other is there.
    """
    runs = []
    for path in find(paths):
        try:
            runs.append(load(path))
        except ValueError as error:  # noqa: PERF203  one run keeps no other from being drawn
            if path in paths:
                raise
            say(f"left out: {error}")
    if not runs:
        raise ValueError("none of these runs can be read: name others")
    return runs


def load(path: Path) -> Run:
    """Read a run. Raises ValueError where it is none, or has no record yet."""
    directory = RunDir(path.resolve())  # so that "." has a name
    if not _is_run(path):
        raise ValueError(f"{path} is no run (it has no config.yaml, or no metrics.jsonl): name a run directory")
    saved = directory.saved_flags() or {}
    try:
        records = read_records(directory.metrics)
    except OSError as error:
        raise ValueError(f"{directory.metrics} cannot be read ({error.strerror})") from None
    if not records:
        raise ValueError(f"{directory.metrics} has no record yet: wait for the first one")
    named = {"experiment": directory.path.name, "train_dir": str(directory.path.parent)}
    flags = {**Config().flat(), **saved, **named}
    return Run(directory, flags, settled(records, flags))


def read_records(path: Path) -> list[dict[str, Any]]:
    """All whole records. A line that is none is left out: the last one while it is written, or one that a crash cut."""
    records = []
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def settled(records: Sequence[Mapping[str, Any]], flags: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The records without means over too few episodes, such as those after each resume; unless there are no others.

    flags: of the run. A record that does not say of how many its means are was written before records did: it is kept.
    """
    enough = enough_episodes(flags["stats_avg"])
    needed = {"": enough * flags["num_policies"]}
    needed |= {f"policy_{policy_id:02d}/": enough for policy_id in range(flags["num_policies"])}

    def has_enough(record: Mapping[str, Any], prefix: str) -> bool:
        return record.get(f"{prefix}episodes_in_mean", math.inf) >= needed[prefix]

    judged = [prefix for prefix in needed if any(has_enough(record, prefix) for record in records)]
    kept: list[Mapping[str, Any]] = []
    for record in records:
        hasty = {prefix for prefix in judged if not has_enough(record, prefix)}
        kept.append({name: record[name] for name in record if _prefix_of_mean(name) not in hasty} if hasty else record)
    return kept


def settled_means(records: Sequence[Mapping[str, Any]], flags: Mapping[str, Any]) -> dict[str, float]:
    """The latest mean of each kind over enough episodes."""
    means = {}
    for record in settled(records, flags):
        means.update({n: v for n, v in record.items() if _prefix_of_mean(n) is not None and is_number(v)})
    return means


def is_number(value: object) -> TypeGuard[float]:
    """Whether a recorded value can be drawn: metrics that are not known yet are null, a diverged loss is NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _prefix_of_mean(name: str) -> str | None:
    """Of a metric that is a mean over episodes: empty, or policy_00/ and so on; None for any other."""
    match = _EPISODE_MEAN.fullmatch(name)
    return match and (match[1] or "")


def _matches(name: str, pattern: str) -> bool:
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _is_run(path: Path) -> bool:
    directory = RunDir(path)
    return directory.config.is_file() and directory.metrics.is_file()


def _runs_inside(path: Path) -> list[Path]:
    candidates = sorted(metrics.parent for metrics in path.rglob("metrics.jsonl"))
    return [c for c in candidates if _is_run(c) and not _MOVED_ASIDE.search(c.name)]
