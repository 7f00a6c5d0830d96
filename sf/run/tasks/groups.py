"""Shares the groups of environments of a run out over its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.envs.tasks.file import read_tasks

_OWN_MODEL = "actor_critic"


def require_tasks(config: Config, spec: EnvSpec) -> None:
    """Raises UsageError for flags that need several tasks, where the environment is a single one, and for a network of
    somebody's own, which knows of none."""
    model, env = config.model, config.run.env
    asked = {
        "task": config.environment.task is not None,
        "task_choice": config.sampler.task_choice != "weight",
        "show_task": model.show_task,
        "normalize_returns_by": model.normalize_returns_by != "all",
    }
    values = {**vars(config.environment), **vars(config.sampler), **vars(model)}
    for name in (name for name, is_asked in asked.items() if is_asked):
        if not spec.tasks:
            raise UsageError(
                f"{name} is {values[name]}, but {env} is one environment: leave it out, or take tasks:FILE"
            )
        if name in vars(model) and model.model != _OWN_MODEL:
            raise UsageError(f"{name} is {values[name]}, but the model {model.model} does not support it: leave it out")


def fewest_workers(config: Config, spec: EnvSpec) -> int:
    """Returns how many rollout workers have a group for each task."""
    num_tasks = 1 if config.environment.task is not None else len(spec.tasks)
    return -(-num_tasks // config.sampler.num_groups_per_worker)


def tasks_of_groups(config: Config, spec: EnvSpec, num_workers: int) -> np.ndarray:
    """Returns the number of the task of each group, [G]; of none if there are no several tasks.

    Raises UsageError if there are too few groups.
    """
    num_groups, num_tasks = num_workers * config.sampler.num_groups_per_worker, len(spec.tasks)
    if not spec.tasks:
        return np.zeros(0, np.int32)
    only, is_by_progress = config.environment.task, config.sampler.task_choice == "progress"
    if only is not None:
        if is_by_progress:
            raise UsageError(f"task_choice is progress, and task {only}, so there is nothing to choose: leave one out")
        return np.full(num_groups, list(spec.tasks).index(only), np.int32)
    if num_groups < num_tasks:
        remedy = f"--num_workers {fewest_workers(config, spec)}, or auto"
        if config.run.serial:  # which has one worker
            remedy = f"--worker_num_splits {num_tasks}, and a multiple of it as --num_envs_per_worker"
        raise UsageError(
            f"the run has {num_groups} groups of environments, and {config.run.env} {num_tasks} tasks, each of which "
            f"needs one: {remedy}"
        )
    if is_by_progress and num_groups == num_tasks:
        raise UsageError(
            f"task_choice is progress, and each of the {num_tasks} tasks needs one of the {num_groups} groups of "
            f"environments, so none is free to move: raise num_workers ({num_workers})"
        )
    return in_turn(num_groups_of_tasks(list(spec.tasks.values()), num_groups))


def sentences(config: Config, spec: EnvSpec, of_groups: np.ndarray) -> Iterator[str]:
    """Yields what is said at the start of a run: how groups are shared out, and which scores are not known."""
    numbers = np.bincount(of_groups, minlength=len(spec.tasks))
    shared = ", ".join(f"{name} {number}" for name, number in zip(spec.tasks, numbers, strict=True))
    yield f"{len(of_groups)} groups of environments, by task: {shared}"
    unknown = [task.name for task in read_tasks(config.run.env).tasks if task.reference is None]
    if unknown:
        yield (
            f"no reference score is known of {', '.join(unknown)}, so the normalised score leaves them out "
            "(random_score and reference_score in the file of tasks give one)"
        )


def num_groups_of_tasks(weights: Sequence[float], num_groups: int) -> np.ndarray:
    """Shares groups out by weights. Returns how many each task gets, [n]: one at least.

    Under that condition they are as near to the weights as they can be: the sum of squared differences between a number
    and its share of `num_groups` is as small as possible. num_groups: at least n.
    """
    shares = np.asarray(weights, np.float64)
    wanted = num_groups * shares / shares.sum()
    numbers = np.ones(len(shares), np.int32)
    assert num_groups >= len(numbers), (num_groups, len(numbers))
    for _ in range(num_groups - len(numbers)):
        numbers[np.argmax(wanted - numbers)] += 1  # each one more lessens the sum by twice this difference, less 1
    return numbers


def in_turn(numbers: np.ndarray) -> np.ndarray:
    """Returns the task of each group, [G]: all tasks one after the other, as long as each has groups left."""
    rounds = [np.flatnonzero(numbers > nth) for nth in range(int(numbers.max()))]
    return np.concatenate(rounds).astype(np.int32)


def moved(of_groups: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns the tasks of the groups, [G], of which each task has as many as `numbers` [n] says. As few as possible
    are other than those in `of_groups`."""
    new, left = of_groups.copy(), numbers.copy()
    free = []
    for group_idx, task in enumerate(of_groups):
        if left[task]:
            left[task] -= 1
        else:
            free.append(group_idx)
    new[free] = np.repeat(np.arange(len(numbers)), left)
    return new
