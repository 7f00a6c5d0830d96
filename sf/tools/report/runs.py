"""Runs on disk: their settings and their records, also while they go on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from sf.config import Config
from sf.config.input_file import is_file
from sf.config.older import BEFORE_THE_FLAG
from sf.storage.run_dir import RANKS, RunDir
from sf.storage.run_records import episode_means, not_undone, numbers, read_records, settled
from sf.storage.text_files import plain

_PLACE = ("start", "stats_avg", "env_steps", "env_frames", "seconds")  # of a record
_MOVED_ASIDE = re.compile(r"\.(old|overwritten)\d+$")  # by --restart_behavior restart or overwrite


@dataclass(frozen=True)
class Run:
    """A run and what it has recorded so far."""

    directory: RunDir
    flags: Mapping[str, Any]  # all settings; those that its config.yaml does not name are the defaults
    records: Sequence[Mapping[str, float]]  # `settled`
    ending: Sequence[Mapping[str, float]] = ()  # the means over episodes of its summary, if it has ended

    @property
    def name(self) -> str:
        return plain(self.directory.path.name)

    @cached_property
    def kept(self) -> Sequence[Mapping[str, float]]:
        """The records and the ending, without what was undone."""
        return not_undone([*self.records, *self.ending])

    @property
    def metrics(self) -> list[str]:
        """Names of all numbers in the records, in the order of their first appearance."""
        names: dict[str, None] = {}
        for record in self.records:
            names.update(dict.fromkeys(record))
        return list(names)

    def matching(self, pattern: str) -> list[str]:
        """The metrics that a name or a pattern like policy_*/mean_return stands for; * matches anything but /."""
        return [name for name in self.metrics if name == pattern or _matches(name, pattern)]


def find(paths: Iterable[Path], say: Callable[[str], None] = print) -> list[Path]:
    """The run directories that these paths stand for: each is a run, or a folder with runs somewhere inside.

    A run that a restart moved aside counts only where its own path is given, and so does what other ranks than the
    first have written. A run that is named twice, or also by a link, is there once. A path without a run is left out,
    and so is a folder that may not be read: `say` is told. Raises ValueError where a path does not exist, or no path
    has a run.
    """
    found: dict[Path, Path] = {}  # by what it really is
    empty = []
    for path in paths:
        inside = [path] if _is_run(path) else _runs_inside(path, say)
        for run in inside:
            found.setdefault(run.resolve(), run)
        if not inside:
            empty.append(f"{path} is not a run and has no run (a run has config.yaml and metrics.jsonl)")
            if not os.path.exists(path):
                raise ValueError(f"{empty[-1]}: name others")
    if not found and empty:
        raise ValueError(f"{empty[0]}: name others")
    for sentence in empty:
        say(f"left out: {sentence}")
    return list(found.values())


def load_all(paths: Sequence[Path], say: Callable[[str], None]) -> list[Run]:
    """Read the runs that these paths stand for.

    A run that cannot be read or has no record yet is left out, and `say` is told. Raises ValueError where no run is
    left.
    """
    runs = []
    found = find(paths, say)
    for path in found:
        try:
            runs.append(load(path, say))
        except ValueError as error:  # noqa: PERF203  one run keeps no other from being drawn
            if len(found) == 1:
                raise
            say(f"left out: {error}")
    if not runs:
        raise ValueError("none of these runs can be read: name others")
    return runs


def load(path: Path, say: Callable[[str], None] = print) -> Run:
    """Read a run. Raises ValueError where it is no run, cannot be read, or has no record yet.

    say: told of lines that are no record, such as a crash leaves. The other lines are read.
    """
    directory = RunDir(path.resolve())  # so that "." has a name
    if not _is_run(path):
        raise ValueError(f"{path} is not a run (it has no config.yaml, or no metrics.jsonl): name a run directory")
    saved = directory.saved_flags() or {}
    try:
        records, damaged = read_records(directory.metrics)
    except OSError as error:
        raise ValueError(f"{directory.metrics} cannot be read ({error.strerror})") from None
    if damaged:
        where = f"{directory.metrics}, line {damaged[0]}"
        if not records:
            raise ValueError(
                f"{where}, is not a JSON object with numbers, and neither is any other line: name another run"
            )
        others = f", and {len(damaged) - 1} lines more" if len(damaged) > 1 else ""
        say(f"left out: {where}, which is not a JSON object with numbers{others}")
    if not records:
        raise ValueError(f"{directory.metrics} has no record yet: wait for the first one")
    named = {"experiment": directory.path.name, "train_dir": str(directory.path.parent)}
    older = BEFORE_THE_FLAG if saved else {}
    flags = {**Config().flat(), **older, **saved, **named}
    kept = settled([*records, *_ending(directory, records[-1])], flags)
    return Run(directory, flags, kept[: len(records)], kept[len(records) :])


def _ending(directory: RunDir, last: Mapping[str, float]) -> list[dict[str, float]]:
    """Returns what the summary says of episodes, some of which ended after the last record. Its other numbers are over
    the whole run. Empty where the run goes on."""
    summary = numbers(directory.saved_summary() or {})
    if summary.get("seconds", -1.0) < last.get("seconds", 0.0):
        return []
    return [{**{name: summary[name] for name in _PLACE if name in summary}, **episode_means(summary)}]


def _matches(name: str, pattern: str) -> bool:
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _is_run(path: Path) -> bool:
    directory = RunDir(path)
    return is_file(directory.config) and is_file(directory.metrics)


def _runs_inside(path: Path, say: Callable[[str], None]) -> list[Path]:
    def leave_out(error: OSError) -> None:
        if isinstance(error, PermissionError):
            say(f"left out: {error.filename} cannot be read ({error.strerror})")

    walked = os.walk(path, onerror=leave_out)
    candidates = sorted(Path(folder) for folder, _, files in walked if "metrics.jsonl" in files)
    of_first_ranks = [c for c in candidates if RANKS not in c.relative_to(path).parts]
    return [c for c in of_first_ranks if _is_run(c) and not _MOVED_ASIDE.search(c.name)]
