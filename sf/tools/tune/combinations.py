"""Which combinations of the values under `search` sf-train takes: a rule may be one of several flags together."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from sf.config import Config, EnvOptions
from sf.envs.errors import UsageError
from sf.tools.tune.search import Search

Point = Mapping[str, Any]
"""A value for each flag under `search`."""

_MOST_TRIED = 500  # of more combinations some are drawn
_NUM_DRAWN = 200
_MOST_IN_VAIN = 20  # before it is said that none can run: each may make the environment
_OF_THE_START = {"config", "init_from", *(field.name for field in fields(EnvOptions))}  # they choose a preset
_ENDS = ("train_for_env_steps", "train_for_env_frames", "train_for_seconds", "stop_at_return")


class Combinations(NamedTuple):
    """Those that can run, and a sentence about the others, if any."""

    points: Sequence[Point]
    configs: Sequence[Config]  # of each
    why_not_all: str | None


def try_combinations(search: Search, path: Path, configured: Callable[[Point], Config]) -> Combinations:
    """All combinations, or of many some that are drawn, and each bound and choice in at least one.

    configured: raises ValueError for a combination that cannot run. path: of the search, for messages. Raises
    ValueError where most combinations cannot run, where a bound or a choice can run with no other value, and where
    runs would end differently.
    """
    attempts = _Attempts(search, configured)
    points = _points(search)
    for point in points:
        attempts.take(point)
        if not attempts.points and len(attempts.refusals) == _MOST_IN_VAIN:
            break
    if not attempts.points:
        raise ValueError(f"{path}: {attempts.refusals[0]}")
    why_not_all = None
    if attempts.refusals:
        are_some = "" if len(points) == num_combinations(search) else " that were drawn"
        how_many = f"{len(attempts.refusals)} of {len(points)} combinations under search{are_some} cannot run"
        why_not_all = f"{path}: {how_many} ({attempts.refusals[0]}): "
        if len(attempts.refusals) > len(points) / 2:
            raise UsageError(why_not_all + "leave out values that do not go together")
        why_not_all += "others are drawn in their place"
    for name, value in _bounds_and_choices(search):
        if any(point[name] == value for point in attempts.points):
            continue
        if not any(attempts.take({**point, name: value}) for point in attempts.points[:_MOST_IN_VAIN]):
            raise ValueError(f"{path}: {attempts.refusals[-1]}")
    _require_one_end(path, attempts.configs)
    return Combinations(attempts.points, attempts.configs, why_not_all)


def num_combinations(search: Search) -> float:
    return math.prod(values.num for values in search.space.values())


class _Attempts:
    """What has come of the combinations that were tried."""

    def __init__(self, search: Search, configured: Callable[[Point], Config]) -> None:
        self._configured = configured
        self._is_start_searched = not _OF_THE_START.isdisjoint(search.space)
        self.points: list[Point] = []
        self.configs: list[Config] = []
        self.refusals: list[str] = []

    def take(self, point: Point) -> bool:
        """Whether it can run."""
        try:
            config = self._config_of(point)
        except ValueError as error:
            self.refusals.append(str(error))
            return False
        self.points.append(point)
        self.configs.append(config)
        return True

    def _config_of(self, point: Point) -> Config:
        """To choose a preset makes the environment, so combinations of one preset are changed into each other."""
        if self._is_start_searched or not self.configs:
            return self._configured(point)
        return self.configs[0].replace(**point)


def _points(search: Search) -> list[Point]:
    """Those of the bounds and choices come first, the others in any order."""
    rng = random.Random(0)
    if num_combinations(search) <= _MOST_TRIED:
        grids = ([values.nth(k) for k in range(int(values.num))] for values in search.space.values())
        points: list[Point] = [dict(zip(search.space, each, strict=True)) for each in itertools.product(*grids)]
        rng.shuffle(points)
        examples = [run.point for run in search.examples()]
        return sorted(points, key=lambda point: point not in examples)
    return [search.draw(rng) for _ in range(_NUM_DRAWN)]


def _bounds_and_choices(search: Search) -> Iterator[tuple[str, Any]]:
    for name, values in search.space.items():
        for value in values.examples:
            yield name, value


def _require_one_end(path: Path, configs: Sequence[Config]) -> None:
    """Trials are compared by what they have reached at their ends."""
    for name in _ENDS:
        ends = list(dict.fromkeys(getattr(config.run, name) for config in configs))
        if len(ends) > 1:
            raise UsageError(
                f"{path}: {name} is {ends[0]} in some runs and {ends[1]} in others, so trials would be compared after "
                "unlike numbers of env steps: set one value under flags"
            )
