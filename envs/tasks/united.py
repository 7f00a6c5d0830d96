"""The spaces of several tasks as one: what the policy of all tasks sees and does, and the part of each task in it.

Observations are united by their keys: images are scaled to the largest, vectors are as long as the longest, and what a
task lacks is zeros. Heads of actions are united by the names of their choices (`sf.envs.tasks.heads`), continuous
numbers by their position, and masks forbid what a task lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sf.envs import registry
from sf.envs.errors import UsageError
from sf.envs.group import EnvSpec
from sf.envs.groups.kinds import WidenedMask
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK, CONTINUOUS_MASK, ActionSpec
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.observations import channels_trail, is_image
from sf.envs.spaces.unions import Actions, require_choices_or_numbers, union_of_numbers, union_of_observations
from sf.envs.tasks.file import Task, TaskFile, read_tasks, taken_over
from sf.envs.tasks.heads import OwnHead, choice_names, unite_heads

TASK = "task"
"""The name of the observation that says which task a row is of: [n] float32, one-hot. `--show_task` shows it to the
policy."""

_ADDED = (TASK, CONTINUOUS_MASK)


class Place(NamedTuple):
    """Says where an observation of a task goes. own: its box. at: its part of the row; None: the whole row, scaled."""

    own: gym.spaces.Box
    at: tuple[slice, ...] | None


@dataclass(frozen=True)
class Part:
    """The part of one task in the spaces of all.

    spec: the united one, with what else is true of this task. own: of its environment. places: of its observations, by
    key. constants: what is written beside them in every row. heads: its own, in their order.
    """

    task: Task
    spec: EnvSpec
    own: EnvSpec
    places: dict[str, Place]
    constants: dict[str, np.ndarray]
    heads: tuple[OwnHead, ...]

    def mask(self) -> WidenedMask:
        """Returns what widens the action mask of an actor. It holds the memory of that mask, so each group has its
        own."""
        starts = np.cumsum([0, *ActionSpec.of(self.spec.action_space).discrete_sizes])[:-1]
        places = [starts[head.united] + np.array(head.choices) for head in self.heads]
        lacking = np.delete(starts, [head.united for head in self.heads])
        box = self.own.obs_space.spaces.get(ACTION_MASK)
        return WidenedMask(np.concatenate([np.zeros(0, np.int64), *places]), lacking, box)


def unite(env_id: str, options: EnvOptions, anew: bool = False) -> tuple[Part, ...]:
    """Returns the part of each task of `env_id`, in the order of its file. Makes each environment once in a process.

    anew: makes each again, since somebody may have changed its code, as in a notebook. Raises UsageError where spaces
    cannot be united, where an environment has several agents, or where they differ in how many frames a step has; else
    as `sf.envs.describe` does.
    """
    if options.kwargs:
        raise UsageError(f"env_kwargs is {options.env_kwargs}: {env_id} has env_kwargs for each task in its file")
    key = env_id, read_tasks(env_id).tasks, options
    if anew or key not in _found:
        _found[key] = _unite(*key)
    return _found[key]


_Key = tuple[str, tuple[Task, ...], EnvOptions]
_found: dict[_Key, tuple[Part, ...]] = {}  # each group of a process asks, and some environments are slow to make


@dataclass(frozen=True)
class FoundTasks:
    """Carries what one process has found of tasks to another one, which need not make all environments again."""

    env_id: str
    options: EnvOptions
    file: TaskFile
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, env_id: str, options: EnvOptions) -> FoundTasks:
        options = replace(options, task=None)
        return cls(env_id, options, read_tasks(env_id), unite(env_id, options))

    def take_over(self) -> None:
        """Keep what was found in this process."""
        taken_over[self.env_id] = self.file
        _found[self.env_id, self.file.tasks, self.options] = self.parts


def _unite(env_id: str, tasks: tuple[Task, ...], options: EnvOptions) -> tuple[Part, ...]:
    specs = []
    for task in tasks:
        specs.append(registry.describe(task.env, options_of(task, options)))
        _require_single(env_id, task, specs[-1])
        if specs[-1].frameskip != specs[0].frameskip:
            raise UsageError(
                f"{env_id}: a step of {tasks[0].name} is {specs[0].frameskip} frames, and one of {task.name} "
                f"{specs[-1].frameskip}: give all the same by --env_frameskip"
            )
    names = [task.name for task in tasks]
    own: list[dict[str, Any]] = [{k: box for k, box in spec.obs_space.items() if k != ACTION_MASK} for spec in specs]
    boxes: dict[str, gym.Space] = {**union_of_observations(env_id, _with_images_of_one_size(own), names, "task")}
    boxes[TASK] = Identity(len(tasks))
    heads = unite_heads(list(map(choice_names, specs)))
    sizes = tuple(map(len, heads.names))
    action_space = _action_space(env_id, specs, sizes, names)
    lacks_choices = any(sum(len(head.choices) for head in of_task) < sum(sizes) for of_task in heads.of_tasks)
    if lacks_choices or any(ACTION_MASK in spec.obs_space.spaces for spec in specs):
        boxes[ACTION_MASK] = gym.spaces.Box(0, 1, (sum(sizes),), np.int8)
    action = ActionSpec.of(action_space)
    if action.is_partial:
        boxes[CONTINUOUS_MASK] = gym.spaces.Box(0, 1, (action.num_continuous,), np.int8)
    united = EnvSpec(
        gym.spaces.Dict(boxes),
        action_space,
        frameskip=specs[0].frameskip,
        action_names=heads.names if all(spec.action_names for spec in specs) else (),
        tasks={task.name: task.weight for task in tasks},
    )
    of_tasks = zip(tasks, range(len(tasks)), specs, heads.of_tasks, strict=True)
    return tuple(_part(task, number, spec, united, of_task) for task, number, spec, of_task in of_tasks)


def options_of(task: Task, options: EnvOptions) -> EnvOptions:
    """Returns the options of the environment of one task."""
    return replace(options, env_kwargs=task.env_kwargs, task=None)


def _require_single(env_id: str, task: Task, spec: EnvSpec) -> None:
    if spec.num_agents != 1:
        raise UsageError(
            f"{env_id}: {task.env} has {spec.num_agents} agents, and each task must have one: train it alone"
        )
    for key in _ADDED:
        if key in spec.obs_space.spaces:
            raise UsageError(f"{task.env} has an observation called {key!r}, which {env_id} adds: rename it")


def _with_images_of_one_size(of_tasks: Sequence[dict[str, gym.spaces.Box]]) -> list[dict[str, gym.spaces.Box]]:
    """Returns the boxes with images as high and wide as the largest of their key, if their channels are alike."""
    out = [dict(boxes) for boxes in of_tasks]
    for key in dict.fromkeys(key for boxes in of_tasks for key in boxes):
        found = [boxes[key] for boxes in out if key in boxes]
        if not all(map(is_image, found)) or len({_channels(box.shape) for box in found}) > 1:
            continue
        size: Any = np.max([box.shape for box in found], axis=0).tolist()
        for boxes in out:
            if key in boxes and list(boxes[key].shape) != size:
                boxes[key] = gym.spaces.Box(0, 255, size, np.uint8)
    return out


def _channels(shape: tuple[int, ...]) -> tuple[bool, int]:
    """Returns whether the channels of an image are its last axis, and how many there are."""
    trail = channels_trail(shape)
    return trail, shape[-1] if trail else shape[0]


def _action_space(env_id: str, specs: Sequence[EnvSpec], sizes: Sequence[int], names: Sequence[str]) -> gym.Space:
    """sizes: of the heads of all tasks. names: of the tasks."""
    spaces = [spec.action_space for spec in specs]
    own_sizes = {ActionSpec.of(space).discrete_sizes for space in spaces}
    if all(space == spaces[0] for space in spaces) and own_sizes == {tuple(sizes)}:
        return spaces[0]
    require_choices_or_numbers(env_id, spaces, names, "task")
    numbers = union_of_numbers(list(map(Actions.of, spaces)))
    if not sizes:
        assert numbers is not None
        return numbers
    heads: gym.Space = gym.spaces.Discrete(sizes[0]) if len(sizes) == 1 else gym.spaces.MultiDiscrete([*sizes])
    return heads if numbers is None else gym.spaces.Tuple([heads, numbers])


def _part(task: Task, number: int, own: EnvSpec, united: EnvSpec, heads: tuple[OwnHead, ...]) -> Part:
    constants = {TASK: np.eye(len(united.tasks), dtype=np.float32)[number]}
    if CONTINUOUS_MASK in united.obs_space.spaces:
        num_all, num_own = (ActionSpec.of(spec.action_space).num_continuous for spec in (united, own))
        constants[CONTINUOUS_MASK] = (np.arange(num_all) < num_own).astype(np.int8)
    places = {}
    for key, box in own.obs_space.items():
        if key != ACTION_MASK:
            assert isinstance(box, gym.spaces.Box)
            is_scaled = is_image(box) and box.shape != united.obs_space[key].shape
            places[key] = Place(box, None if is_scaled else tuple(map(slice, box.shape)))
    spec = replace(
        united,
        has_own_time_limit=own.has_own_time_limit,
        can_cut=own.can_cut,
        time_limit=own.time_limit,
    )
    return Part(task, spec, own, places, constants, heads)
