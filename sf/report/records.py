"""The records of a run in metrics.jsonl, also while it is written and after a crash."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from sf.metrics.policy_progress import enough_episodes
from sf.report.names import plain

_EPISODE_MEAN = re.compile(r"(policy_\d+/)?(?:(?:mean|std|min|max)_return|mean_episode_\w+|episodes_in_mean|stats/.+)")
_LARGEST = 1e100  # squares and sums of it are finite; no run measures larger numbers


def read_records(path: Path) -> tuple[list[dict[str, float]], list[int]]:
    """All whole records, and the numbers of the lines that are no record, from 1 on. Raises OSError.

    A last line without an end never counts as damaged: it is still being written, or was when the run was killed.
    """
    records, damaged = [], []
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        record = parsed(line)
        if record:
            records.append(record)
        elif line.strip():
            damaged.append(number)
    whole = parsed(last)
    return ([*records, whole] if whole else records), damaged


def parsed(text: bytes) -> dict[str, float]:
    """The numbers of one JSON object by name. Empty where the text is no such object or it has no numbers."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return numbers(found) if isinstance(found, dict) else {}


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """What can be drawn and compared. Metrics that are not known yet are null, a loss that diverged is null or NaN."""
    return {plain(name): value for name, value in record.items() if is_number(value)}


def settled(records: Sequence[Mapping[str, float]], flags: Mapping[str, Any]) -> list[Mapping[str, float]]:
    """The records without means over too few episodes, such as those after each resume. If there are no others, all.

    flags: of the run. A start with another `stats_avg` than today's is judged by its own, where it is lower. A record
    without the number of episodes was written by an older version, and is kept.
    """
    averaged = _averaged(records, flags)

    def has_enough(record: Mapping[str, float], prefix: str) -> bool:
        enough = enough_episodes(averaged[record.get("start")])
        needed = enough if prefix else enough * flags["num_policies"]
        return record.get(f"{prefix}episodes_in_mean", math.inf) >= needed

    prefix_of = {name: _prefix_of_mean(name) for record in records for name in record}
    prefixes = {prefix for prefix in prefix_of.values() if prefix is not None}
    judged = [prefix for prefix in prefixes if any(has_enough(record, prefix) for record in records)]
    kept: list[Mapping[str, float]] = []
    for record in records:
        hasty = {prefix for prefix in judged if not has_enough(record, prefix)}
        kept.append({name: record[name] for name in record if prefix_of[name] not in hasty} if hasty else record)
    return kept


def not_undone(records: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """The records without those that were undone: where a run went back to a checkpoint, all after that checkpoint."""
    remaining: list[Mapping[str, float]] = []
    at: list[float] = []  # env steps of each
    for record in records:
        env_steps = record.get("env_steps")
        if env_steps is not None:
            while at and (at[-1] > env_steps or (at[-1] == env_steps and _is_earlier_start(remaining[-1], record))):
                at.pop()
                remaining.pop()
        remaining.append(record)
        at.append(at[-1] if env_steps is None and at else env_steps or 0.0)
    return remaining


def settled_means(records: Sequence[Mapping[str, float]], flags: Mapping[str, Any]) -> dict[str, float]:
    """The latest mean of each kind over enough episodes."""
    means: dict[str, float] = {}
    for record in settled(records, flags):
        means.update({name: value for name, value in record.items() if _prefix_of_mean(name) is not None})
    return means


def is_number(value: object) -> TypeGuard[float]:
    """Whether a recorded value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def _is_earlier_start(record: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return record.get("start", 0.0) < other.get("start", 0.0)


def _averaged(records: Sequence[Mapping[str, float]], flags: Mapping[str, Any]) -> dict[float | None, int]:
    """By start of the run, over how many episodes of a policy its means go: `stats_avg`, which a resume may change.

    It is the largest number in a mean once earlier episodes have fallen out of one. Else it is not known.
    """
    of_one = "episodes_in_mean" if flags["num_policies"] == 1 else "/episodes_in_mean"
    largest: dict[float | None, float] = {}
    full: set[float | None] = set()
    for record in records:
        start = record.get("start")
        counts = [value for name, value in record.items() if name.endswith(of_one)]
        largest[start] = max([largest.get(start, 0.0), *counts])
        if record.get("episodes", 0.0) > record.get("episodes_in_mean", math.inf):
            full.add(start)
    today: int = flags["stats_avg"]
    return {start: min(today, int(num)) if start in full and num else today for start, num in largest.items()}


def _prefix_of_mean(name: str) -> str | None:
    """Of a metric that is a mean over episodes: empty, or policy_00/ and so on; None for any other."""
    match = _EPISODE_MEAN.fullmatch(name)
    return match and (match[1] or "")
