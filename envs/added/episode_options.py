"""Options of an environment that may differ from one episode to the next: `--env_options`, and what `--anneal` changes.

An environment declares them, with the range of each, as its attribute `schedulable`, for example `{"size": (5, 16)}`,
and is told the values by `set_options({"size": 7})` just before a reset. A vector of environments is told, by
`set_options({"size": 7}, env_idx)`, what the next episode of one of them begins with. A value is an int where both ends
of the range are.

An environment with `levels = 200` has an option `level` from 0 to 199, which is drawn for each episode where nothing
else is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from sf.envs.errors import ApiError, UsageError, call_of
from sf.envs.group import EnvGroup, EnvSpec, Episode, ObsRows, StepResult
from sf.envs.wrappers.layers import objects

Range = tuple[float, float]
"""The lowest and the highest value, which may be equal."""

LEVEL = "level"


class ScheduledGroup(EnvGroup, Protocol):
    """A group whose `spec.schedulable` has names."""

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        """Let the next episode of this environment begin with these values, and all after it."""
        ...


class EpisodeOptionsGroup:
    """A group of environments whose options are drawn for each episode. It has all else that the group has.

    values: [E] those that the present episode of each environment began with, by name.
    """

    def __init__(self, group: Any, ranges: Mapping[str, Range], seed: Sequence[int]) -> None:
        """ranges: to draw from. seed: of the draws."""
        self._group: ScheduledGroup = group
        self._num_agents = group.spec.num_agents
        num_envs = group.num_actors // self._num_agents
        self._rng = np.random.default_rng(seed)
        self.values: list[Mapping[str, float]] = [{} for _ in range(num_envs)]
        self._next: list[Mapping[str, float]] = [{} for _ in range(num_envs)]
        self._ranges: list[Mapping[str, Range]] = [{} for _ in range(num_envs)]
        for env_idx in range(num_envs):
            self.set_ranges(env_idx, ranges)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def set_ranges(self, env_idx: int, ranges: Mapping[str, Range]) -> None:
        """Draw these options of the next episodes of this environment from these ranges, and the others as before."""
        self._ranges[env_idx] = {**self._ranges[env_idx], **ranges}
        self._draw(env_idx)

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(obs)
        for env_idx in range(len(self.values)):
            self._begin(env_idx)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = self._group.step(discrete, continuous, obs, result)
        if result.first.any():
            begins = (result.first & ~result.joined).reshape(-1, self._num_agents).any(axis=1)
            for env_idx in np.flatnonzero(begins).tolist():
                self._begin(env_idx)
        return episodes

    def _begin(self, env_idx: int) -> None:
        self.values[env_idx] = self._next[env_idx]
        if any(low < high for low, high in self._ranges[env_idx].values()):
            self._draw(env_idx)

    def _draw(self, env_idx: int) -> None:
        declared, ranges = self._group.spec.schedulable, self._ranges[env_idx]
        self._next[env_idx] = {name: _drawn(ranges[name], declared[name], self._rng) for name in ranges}
        self._group.set_options(env_idx, self._next[env_idx])


def _drawn(wanted: Range, declared: Range, rng: np.random.Generator) -> float:
    """Returns a value of a range. Whole numbers are equally likely."""
    low, high = wanted
    if not _are_whole(declared):
        return float(rng.uniform(low, high)) if low < high else low
    return int(rng.integers(round(low), round(high) + 1)) if low < high else round(low)


def _are_whole(declared: Range) -> bool:
    return all(isinstance(end, int) for end in declared)


def declared_options(env_id: str, env: Any) -> dict[str, Range]:
    """Returns the options that an environment or a wrapper of it declares, with their ranges.

    An attribute `levels` is a declaration in environments with a method `set_options` alone: others may mean something
    else by it. Raises ApiError for a declaration of another form, or one without `set_options`.
    """
    declared, can_be_told = _attribute(env, "schedulable"), callable(_attribute(env, "set_options"))
    levels = _attribute(env, "levels") if can_be_told else None
    if declared is None and levels is None:
        return {}
    declared = {} if declared is None else declared
    if not isinstance(declared, Mapping) or not all(map(_is_range, declared.values())):
        raise ApiError(
            f"{env_id}: `schedulable` is {declared!r}: it must be a dict of names of options to their lowest and "
            'highest values, such as {"size": (5, 16)}'
        )
    if LEVEL in declared or not (levels is None or (isinstance(levels, int) and levels > 0)):
        raise ApiError(f"{env_id}: it has levels, so it must have their number as `levels`, such as `levels = 200`")
    if not can_be_told:
        raise ApiError(f"{env_id}: it declares `schedulable`, so it must have a method `set_options(values)`, too")
    found = {str(name): (low, high) for name, (low, high) in declared.items()}
    return found if levels is None else {**found, LEVEL: (0, levels - 1)}


def ranges_asked(spec: EnvSpec, given: Mapping[str, Range]) -> dict[str, Range]:
    """Returns the ranges that options are drawn from: those given, and of the level, all levels."""
    return {**{name: ends for name, ends in spec.schedulable.items() if name == LEVEL}, **given}


def tell_options(env_id: str, env: Any, values: Mapping[str, float], *which: int) -> None:
    """Calls `set_options` of an environment. which: the environment of a vector of them."""
    with call_of(env_id, "set_options()"):
        _attribute(env, "set_options")(dict(values), *which)


def require_options(env_id: str, spec: EnvSpec, ranges: Mapping[str, Range], flag: str) -> None:
    """Raises UsageError for options that an environment does not declare, or not with these values. flag: names
    them."""
    for name, (low, high) in ranges.items():
        if name not in spec.schedulable:
            known = ", ".join(spec.schedulable) or "none"
            raise UsageError(
                f"{flag} names the option {name!r}, which {env_id} does not declare (it declares {known}): give the "
                "environment an entry in `schedulable`, see docs/curricula.md"
            )
        lowest, highest = spec.schedulable[name]
        if not lowest <= low <= high <= highest:
            wrong = low if not lowest <= low <= highest else high
            raise UsageError(f"{flag} gives {name} the value {wrong:g}: {env_id} takes {lowest:g} to {highest:g}")


def _is_range(ends: Any) -> bool:
    if not isinstance(ends, Sequence) or len(ends) != 2:
        return False
    return all(isinstance(end, int | float) and math.isfinite(end) for end in ends) and ends[0] <= ends[1]


def _attribute(env: Any, name: str) -> Any:
    """Returns an attribute of an environment or of what is inside; None if there is none."""
    if isinstance(env, gym.Env):
        return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None
    for each in objects(env):  # a wrapper may forward what it does not have
        if hasattr(type(each), name) or name in getattr(each, "__dict__", {}):
            return getattr(each, name)
    return None
