"""What a run has recorded in metrics.jsonl and summary.json, also while it writes them and after a crash."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from sf.storage import text_files
from sf.storage.run_dir import RunDir
from sf.storage.text_files import plain

_EPISODE_MEAN = re.compile(r"(policy_\d+/)?(?:(?:mean|std|min|max)_return|mean_episode_\w+|episodes_in_mean|stats/.+)")
_plain_name = lru_cache(maxsize=10_000)(plain)  # all records share the names
_LARGEST = 1e100  # squares and sums of it are finite; no run measures larger numbers


def read_records(path: Path) -> tuple[list[dict[str, float]], list[int]]:
    """All whole records, and the numbers of the lines that are no record, from 1 on. Raises OSError.

    A last line without an end never counts as damaged: it is still being written, or was when the run was killed.
    """
    records, damaged = [], []
    with path.open("rb") as file:  # line by line: a long run has gigabytes
        for number, line in enumerate(file, start=1):
            record = parsed(line)
            if record:
                records.append(record)
            elif line.endswith(b"\n") and line.strip():
                damaged.append(number)
    return records, damaged


def latest_record(run_dir: RunDir) -> dict[str, Any]:
    """The last whole record as it was written, with names whose value is not known. Empty where there is none."""
    try:
        lines = text_files.last_lines(run_dir.metrics, 3)
    except OSError:
        return {}
    for line in reversed(lines):  # the last is empty, or half written
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    return {}


def parsed(text: bytes) -> dict[str, float]:
    """The numbers of one JSON object by name. Empty where the text is no such object or it has no numbers."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return numbers(found) if isinstance(found, dict) else {}


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """Returns what can be drawn and compared. Unknown metrics are null, a loss that diverged is null or NaN."""
    return {_plain_name(name): value for name, value in record.items() if is_number(value)}


def enough_episodes(stats_avg: int) -> float:
    """Episodes that a mean of the latest `stats_avg` has to be over at least, for decisions and plots."""
    return stats_avg / 2


def settled(records: Sequence[Mapping[str, float]], flags: Mapping[str, Any]) -> list[Mapping[str, float]]:
    """The records without means over too few episodes, such as those after each resume. If there are no others, all.

    flags: of the run. A record is judged by its own `stats_avg`, which a resume may change. One of an older version
    does not say it, so it is judged by today's; one without the number of episodes is kept.
    """

    def has_enough(record: Mapping[str, float], prefix: str) -> bool:
        return _has_enough(record, prefix, flags["stats_avg"], 1 if prefix else flags["num_policies"])

    prefix_of = {name: _prefix_of_mean(name) for record in records for name in record}
    prefixes = {prefix for prefix in prefix_of.values() if prefix is not None}
    judged = [prefix for prefix in prefixes if any(has_enough(record, prefix) for record in records)]
    kept: list[Mapping[str, float]] = []
    for record in records:
        hasty = {prefix for prefix in judged if not has_enough(record, prefix)}
        kept.append({name: record[name] for name in record if prefix_of[name] not in hasty} if hasty else record)
    return kept


def is_settled(record: Mapping[str, float], name: str, num_policies: int) -> bool:
    """Returns whether this number of a record is no mean over too few episodes, as far as the record says.

    num_policies: of the run, whose own mean is over the episodes of all.
    """
    prefix = _prefix_of_mean(name)
    return prefix is None or _has_enough(record, prefix, 0, 1 if prefix else num_policies)


def _has_enough(record: Mapping[str, float], prefix: str, stats_avg: int, num_policies: int) -> bool:
    """stats_avg: where the record does not say its own."""
    needed = enough_episodes(int(record.get("stats_avg", stats_avg))) * num_policies
    return record.get(f"{prefix}episodes_in_mean", math.inf) >= needed


def not_undone(records: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """The records without those that were undone: where a run went back to a checkpoint, all after that checkpoint.

    A record at the very env steps of the checkpoint goes with the later ones of its start, and stays if there are none.
    """
    remaining: list[Mapping[str, float]] = []
    at: list[float] = []  # env steps of each
    for record in records:
        env_steps = record.get("env_steps")
        if env_steps is not None:
            num_kept = len(remaining)
            while at and (at[-1] > env_steps or (num_kept > len(at) and at[-1] == env_steps)):
                at.pop()
                remaining.pop()
        remaining.append(record)
        at.append(at[-1] if env_steps is None and at else env_steps or 0.0)
    return remaining


def settled_means(records: Sequence[Mapping[str, float]], flags: Mapping[str, Any]) -> dict[str, float]:
    """The latest mean of each kind over enough episodes."""
    means: dict[str, float] = {}
    for record in settled(records, flags):
        means.update(episode_means(record))
    return means


def episode_means(record: Mapping[str, float]) -> dict[str, float]:
    """The numbers of a record that are over episodes."""
    return {name: value for name, value in record.items() if _prefix_of_mean(name) is not None}


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a recorded value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


@lru_cache(maxsize=10_000)
def _prefix_of_mean(name: str) -> str | None:
    """Returns the prefix of a mean over episodes: empty, or policy_00/ and so on; None for any other metric."""
    match = _EPISODE_MEAN.fullmatch(name)
    return match and (match[1] or "")
