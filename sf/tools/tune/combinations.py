"""Finds combinations of the values under `search` that sf-train takes: a rule may be about several flags together."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from sf.config import Config, EnvOptions
from sf.envs.errors import UsageError
from sf.tools.tune.search import Search

Point = Mapping[str, Any]
"""A value for each flag under `search`."""

_NUM_DRAWN = 200  # beside those with the bounds and choices
_MOST_IN_VAIN = 20  # before it is said that none can run: each may make the environment
_OF_THE_START = {"config", "init_from", *(field.name for field in fields(EnvOptions))}  # they choose a preset
_ENDS = ("train_for_env_steps", "train_for_env_frames", "train_for_seconds", "stop_at_return")


class Combinations(NamedTuple):
    """Combinations that can run, their configurations, and a sentence about the others, if any."""

    points: Sequence[Point]
    configs: Sequence[Config]
    why_not_all: str | None


def try_combinations(search: Search, path: Path, configured: Callable[[Point], Config]) -> Combinations:
    """Try combinations that are drawn, and each bound and choice in at least one that can run.

    configured: raises ValueError for a combination that cannot run. path: of the search, for messages. Raises
    ValueError if most combinations cannot run, if a bound or a choice can run with no other value, and if runs would
    end differently.
    """
    attempts = _Attempts(search, configured)
    rng = random.Random(0)
    drawn = [*(run.point for run in search.examples()), *(search.draw(rng) for _ in range(_NUM_DRAWN))]
    points = list({json.dumps(point, default=str): point for point in drawn}.values())
    for point in points:
        attempts.take(point)
        if not attempts.points and len(attempts.refusals) == _MOST_IN_VAIN:
            break
    if not attempts.points:
        raise ValueError(f"{path}: {attempts.refusals[0]}")
    why_not_all = None
    if attempts.refusals:
        how_many = f"{len(attempts.refusals)} of {len(points)} combinations under search cannot run"
        why_not_all = f"{path}: {how_many} ({attempts.refusals[0]}): "
        if len(attempts.refusals) > len(points) / 2:
            raise UsageError(why_not_all + "leave out values that do not go together")
        why_not_all += "others are drawn in their place"
    for name, values in search.space.items():
        for value in values.examples:
            if any(point[name] == value for point in attempts.points):
                continue
            if not any(attempts.take({**point, name: value}) for point in attempts.points[:_MOST_IN_VAIN]):
                raise ValueError(f"{path}: {attempts.refusals[-1]}")
    _require_one_end(path, attempts.configs)
    return Combinations(attempts.points, attempts.configs, why_not_all)


class _Attempts:
    """The combinations that were tried: those that can run with their configurations, and why the others cannot."""

    def __init__(self, search: Search, configured: Callable[[Point], Config]) -> None:
        self._configured = configured
        self._is_start_searched = not _OF_THE_START.isdisjoint(search.space)
        self.points: list[Point] = []
        self.configs: list[Config] = []
        self.refusals: list[str] = []

    def take(self, point: Point) -> bool:
        """Returns whether it can run."""
        try:
            # To choose a preset makes the environment, so combinations of one preset are changed into each other.
            is_first = self._is_start_searched or not self.configs
            config = self._configured(point) if is_first else self.configs[0].replace(**point)
        except ValueError as error:
            self.refusals.append(str(error))
            return False
        self.points.append(point)
        self.configs.append(config)
        return True


def _require_one_end(path: Path, configs: Sequence[Config]) -> None:
    """Trials are compared by what they have reached at their ends."""
    for name in _ENDS:
        ends = list(dict.fromkeys(getattr(config.run, name) for config in configs))
        if len(ends) > 1:
            raise UsageError(
                f"{path}: {name} is {ends[0]} in some runs and {ends[1]} in others, so trials would be compared after "
                "unlike numbers of env steps: set one value under flags"
            )
