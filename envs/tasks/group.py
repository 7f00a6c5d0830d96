"""Groups of environments of one task, in rows that have room for all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sf.envs import registry
from sf.envs.group import EnvGroup, EnvSpec, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.envs.spaces.observations import channels_trail
from sf.envs.tasks.file import Task, read_tasks
from sf.envs.tasks.references import RETURN, SCORE
from sf.envs.tasks.united import Part, options_of, unite


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """Returns the united spaces, and what is true of all tasks, or of the one that `options.task` names."""
    if options.task is not None:
        return _part(env_id, options, 0).spec
    parts = unite(env_id, options, anew=True)
    return replace(
        parts[0].spec,
        has_own_time_limit=any(part.spec.has_own_time_limit for part in parts),
        can_cut=all(part.spec.can_cut for part in parts),
        time_limit=_longest([part.spec.time_limit for part in parts]),
    )


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """Makes a group of the task that `options.task` names. Without one, groups of this size take tasks in turn."""
    part = _part(env_id, options, first_env_idx // num_envs)
    own = options_of(part.task, options)
    group = registry.make_group(part.task.env, num_envs, own, seed=seed, first_env_idx=first_env_idx, core=core)
    return TaskGroup(group, part)


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Makes a group that can be looked at, of the same task as `make_group`."""
    part = _part(env_id, options, first_env_idx // num_envs)
    own = options_of(part.task, options)
    group = registry.make_rendered_group(part.task.env, num_envs, own, seed=seed, first_env_idx=first_env_idx)
    return TaskGroup(group, part)


def _part(env_id: str, options: EnvOptions, number: int) -> Part:
    """number: of a group, which says the task where the options do not."""
    parts = unite(env_id, replace(options, task=None))
    return parts[number % len(parts) if options.task is None else read_tasks(env_id).index(options.task)]


def _longest(limits: Sequence[int | None]) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


class TaskGroup:
    """A group of one task. It has all else that the group of its environments has."""

    def __init__(self, group: Any, part: Part) -> None:
        self._group: EnvGroup = group
        self._part = part
        self.spec = part.spec
        self.num_actors = group.num_actors
        self._rows = _OwnRows(part, group.num_actors)
        spec = ActionSpec.of(part.own.action_space)
        sizes = ActionSpec.of(part.spec.action_space).discrete_sizes
        # Of each own head: that of all tasks, and the own choice for each choice of that.
        self._heads = [(head.united, _inverse(head.choices, sizes[head.united])) for head in part.heads]
        self._discrete = np.zeros((group.num_actors, len(spec.discrete_sizes)), np.int32)
        self._num_continuous = spec.num_continuous

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(self._rows.lend(obs))
        self._rows.finish(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        for own, (head, choices) in enumerate(self._heads):
            self._discrete[:, own] = choices[discrete[:, head]]
        own_continuous = continuous[:, : self._num_continuous]
        episodes = self._group.step(self._discrete, own_continuous, self._rows.lend(obs), result)
        self._rows.finish(obs)
        return [replace(episode, stats=_with_score(self._part.task, episode)) for episode in episodes]

    def close(self) -> None:
        self._group.close()


def _inverse(choices: Sequence[int], num_united: int) -> np.ndarray:
    """Returns the own choice for each choice of all tasks, [num_united] int32; 0 for those that the mask forbids."""
    own = np.zeros(num_united, np.int32)
    own[list(choices)] = np.arange(len(choices))
    return own


def _with_score(task: Task, episode: Episode) -> dict[str, float]:
    stats = {**episode.stats, RETURN + task.name: episode.episode_return}
    if task.reference is not None:
        stats[SCORE + task.name] = task.reference.normalized(episode.episode_return)
    return stats


class _OwnRows:
    """Lends a group its part of the rows of all tasks, or memory of its own where that part is of another kind."""

    def __init__(self, part: Part, num_actors: int) -> None:
        self._part = part
        boxes = part.spec.obs_space.spaces
        self._absent = [key for key in boxes if key not in part.own.obs_space.spaces and key not in part.constants]
        self._masks = []
        if ACTION_MASK in boxes:
            self._absent = [key for key in self._absent if key != ACTION_MASK]
            self._masks = [part.mask() for _ in range(num_actors)]
        self._padded = {
            key: place.at for key, place in part.places.items() if place.at and place.own.shape != boxes[key].shape
        }
        # What the group writes that is copied from here: images of another size, and numbers of another type.
        self._apart: dict[str, list[np.ndarray]] = {
            key: [np.zeros(place.own.shape, place.own.dtype) for _ in range(num_actors)]
            for key, place in part.places.items()
            if place.at is None or place.own.dtype != boxes[key].dtype
        }
        self._scales = {
            key: _nearest(place.own.shape, boxes[key].shape or ())
            for key, place in part.places.items()
            if place.at is None
        }

    def lend(self, obs: ObsRows) -> Mapping[str, Sequence[np.ndarray]]:
        """Returns where the group writes: {key: [N] arrays}, of its own shapes and types."""
        own: dict[str, Sequence[np.ndarray]] = {}
        for key in self._part.places:
            if key in self._apart:
                own[key] = self._apart[key]
            elif key in self._padded:
                own[key] = [row[self._padded[key]] for row in obs[key]]
            else:
                own[key] = obs[key]
        if ACTION_MASK in self._part.own.obs_space.spaces:
            own[ACTION_MASK] = [mask.own for mask in self._masks]
        return own

    def finish(self, obs: ObsRows) -> None:
        """Write what the group has not: what the task lacks, the masks, and what was written apart."""
        for key in self._absent:
            for row in obs[key]:
                row[...] = 0
        for key, constant in self._part.constants.items():
            for row in obs[key]:
                row[...] = constant
        for key in self._padded:
            length = self._part.places[key].own.shape[0]
            for row in obs[key]:
                row[length:] = 0
        for key, arrays in self._apart.items():
            for row, array in zip(obs[key], arrays, strict=True):
                if key in self._scales:
                    row[...] = array[self._scales[key]]
                else:
                    row[self._part.places[key].at] = array
        for row, mask in zip(obs.get(ACTION_MASK, ()), self._masks, strict=True):
            mask.write(row)


def _nearest(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Returns the indices of an image of the shape `own` that scale it to `shape`: row i of n is row i x m / n of m."""
    rows, columns = (0, 1) if channels_trail(shape) else (1, 2)
    index: list[Any] = [slice(None)] * 3
    index[rows] = (np.arange(shape[rows]) * own[rows] // shape[rows])[:, None]
    index[columns] = np.arange(shape[columns]) * own[columns] // shape[columns]
    return tuple(index)
