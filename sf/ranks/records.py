"""One record of a run from those of its ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SUMS = (
    "sampled_env_frames_per_second",
    "episodes",
    "episodes_in_mean",
    "restarts",
    "lost_episodes",
    "lost_frames",
    "env_faults",
    "search/simulations_per_second",
)
_OVER_EPISODES = ("mean_return", "mean_episode_steps", "mean_episode_frames", "true_objective")
_OVER_EPISODES_PREFIX = "stats/"
_SPREAD = ("std_return", "min_return", "max_return")
_MEANS = ("train/lag_mean", "train/masked_share", "train/clipped_reward_share", "cores/in_use_share")
_MEANS_SUFFIXES = ("/busy_share", "/wait_share", "/slot_wait_share", "/actions_per_batch")
_SUMS_PREFIX = "cores/"
_OF_POLICY = re.compile(r"policy_\d+/")


def merged(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts and rates of sampling are sums, returns are means over the episodes of all, shares of time are means over
    the ranks. All else is the same on each of them, or stays that of the first. There is no return until each rank has
    one: those that have it first may have it of short episodes.

    records: one a rank, the first of rank 0. Names behind `policy_00/` and so on are of the episodes of that policy.
    """
    found: dict[str, Any] = {}
    for prefix in dict.fromkeys(_prefix(name) for name in records[0]):
        parts = [{name[len(prefix) :]: r[name] for name in r if _prefix(name) == prefix} for r in records]
        found |= {prefix + name: value for name, value in _merged(parts).items()}
    return {name: found[name] for name in records[0]}


def _prefix(name: str) -> str:
    match = _OF_POLICY.match(name)
    return match.group() if match else ""


def _merged(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merges names without a prefix."""
    if any(other.get("episodes_in_mean") == 0 for other in records):
        records = [_without_episodes(other) for other in records]
    record = dict(records[0])
    for name in records[0]:
        values = [other[name] for other in records if _is_number(other.get(name))]
        if not values:
            continue
        if name in _OVER_EPISODES or name.startswith(_OVER_EPISODES_PREFIX):
            record[name] = _mean_over_episodes(records, name)
        elif name == "std_return":
            record[name] = _std_return(records)
        elif name == "min_return":
            record[name] = min(values)
        elif name in ("max_return", "train/lag_max"):
            record[name] = max(values)
        elif name in _MEANS or name.endswith(_MEANS_SUFFIXES):
            record[name] = sum(values) / len(values)
        elif name in _SUMS or name.startswith(_SUMS_PREFIX):
            record[name] = sum(values)
    return record


def _without_episodes(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the record without its means and their spread, which are not known."""
    unknown = [name for name in record if name in _OVER_EPISODES + _SPREAD or name.startswith(_OVER_EPISODES_PREFIX)]
    return {**record, **dict.fromkeys(unknown), "episodes_in_mean": 0}


def _mean_over_episodes(records: Sequence[Mapping[str, Any]], name: str) -> float:
    return _weighted_mean((r[name], r["episodes_in_mean"]) for r in records if _is_number(r.get(name)))


def _std_return(records: Sequence[Mapping[str, Any]]) -> float:
    """Over the episodes of all: the mean square of each rank is its variance and the square of its mean."""
    with_episodes = [r for r in records if _is_number(r.get("std_return"))]
    mean = _mean_over_episodes(with_episodes, "mean_return")
    squares = ((r["std_return"] ** 2 + r["mean_return"] ** 2, r["episodes_in_mean"]) for r in with_episodes)
    return float(max(0.0, _weighted_mean(squares) - mean**2) ** 0.5)


def _weighted_mean(values_and_weights: Iterable[tuple[float, float]]) -> float:
    pairs = list(values_and_weights)
    total = sum(weight for _, weight in pairs)
    return float(sum(value * weight for value, weight in pairs) / total) if total else pairs[0][0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
