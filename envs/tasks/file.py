"""Reads the file behind the name `tasks:FILE`: the environments of one run, and how much of it each gets."""

from __future__ import annotations

import importlib.resources
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sf.envs.errors import UsageError
from sf.envs.tasks.references import Reference, known_reference
from sf.envs.yaml_text import parse_yaml

PREFIX = "tasks:"

_OF_FILE = ("tasks", "preset")
_OF_TASK = ("env", "name", "weight", "env_kwargs", "random_score", "reference_score")


@dataclass(frozen=True)
class Task:
    """An environment of a file. env_kwargs: a JSON object. weight: how much of the run it gets, beside the others."""

    name: str
    env: str
    env_kwargs: str = "{}"
    weight: float = 1.0
    reference: Reference | None = None  # None: no scores are known by which returns are normalised


@dataclass(frozen=True)
class TaskFile:
    """The content of a file. preset: of the flags of a run; None: that of the kind of its environments."""

    tasks: tuple[Task, ...]
    preset: str | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(task.name for task in self.tasks))

    def index(self, name: str) -> int:
        """Returns the number of a task. Raises UsageError if there is none of this name."""
        if name not in self.names:
            raise UsageError(f"task is {name!r}, and the file has no such task: name one of {', '.join(self.names)}")
        return self.names.index(name)


def tasks_of(env_id: str) -> TaskFile | None:
    """Returns the tasks of an environment; None if it is a single one. Raises as `read_tasks` does."""
    return read_tasks(env_id) if env_id.startswith(PREFIX) else None


taken_over: dict[str, TaskFile] = {}
"""Holds what another process has read, by the names: a run goes on with it, also if the file changes meanwhile."""


def read_tasks(env_id: str) -> TaskFile:
    """Reads the file of the name `tasks:FILE`: one that comes with the package, or a path.

    Imports nothing that the file names. Raises UsageError for a file that is not there, or is not as it should be.
    """
    if env_id in taken_over:
        return taken_over[env_id]
    name = env_id.removeprefix(PREFIX)
    path: Any = _shipped().joinpath(f"{name}.yaml") if name in shipped_names() else Path(name)
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"env {env_id!r}: {name} cannot be read ({getattr(error, 'strerror', None) or error}): name a YAML file of "
            f"tasks (docs/many_tasks.md), or one of {', '.join(shipped_names())}"
        ) from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    content = _mapping(name, content, _OF_FILE)
    listed = content.get("tasks")
    if not isinstance(listed, list) or not listed:
        raise UsageError(
            f"{name} has no list of tasks: write `tasks:` and under it a line such as `- env: CartPole-v1`"
        )
    preset = content.get("preset")
    if preset is not None and not _is_preset(preset):
        raise UsageError(
            f"{name} has the preset {preset!r}, and there is none of that name: sf-train --help lists them"
        )
    tasks = tuple(_task(f"{name}, task {number}", each) for number, each in enumerate(listed, start=1))
    names = [task.name for task in tasks]
    for each in names:
        if names.count(each) > 1:
            raise UsageError(f"{name} has two tasks called {each!r}: give one of them another `name`")
    return TaskFile(tasks, preset)


def shipped_names() -> list[str]:
    """Returns the names of the files that come with the package."""
    return sorted(path.name.removesuffix(".yaml") for path in _shipped().iterdir() if path.name.endswith(".yaml"))


def _shipped() -> Any:
    return importlib.resources.files("sf.configs") / "tasks"


def _is_preset(name: Any) -> bool:
    is_name = isinstance(name, str) and re.fullmatch(r"\w+", name) is not None
    return is_name and (importlib.resources.files("sf.configs") / f"{name}.yaml").is_file()


def _task(where: str, given: Any) -> Task:
    """where: the file and the position in it, for sentences."""
    settings = _mapping(where, {"env": given} if isinstance(given, str) else given, _OF_TASK)
    env = settings.get("env")
    if not isinstance(env, str) or not env:
        raise UsageError(f"{where} has env {env!r}: name an environment")
    if env.startswith(PREFIX):
        raise UsageError(f"{where} is {env!r}, which is a file of tasks itself: list its environments here")
    name = settings.get("name", re.sub(r"[^\w.-]+", "_", env))
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        raise UsageError(f"{where} has name {name!r}: use letters, digits, '_', '.' and '-', since files are named so")
    weight = settings.get("weight", 1.0)
    if not _is_number(weight) or not weight > 0:
        raise UsageError(
            f"{where} ({name}) has weight {weight!r}: it must be a number above 0; leave the task out for 0"
        )
    env_kwargs = settings.get("env_kwargs", {})
    if not isinstance(env_kwargs, dict):
        raise UsageError(f"{where} ({name}) has env_kwargs {env_kwargs!r}: write a mapping of names to values")
    return Task(name, env, json.dumps(env_kwargs), float(weight), _reference(f"{where} ({name})", env, settings))


def _reference(where: str, env: str, settings: Mapping[str, Any]) -> Reference | None:
    given = [settings[key] for key in ("random_score", "reference_score") if key in settings]
    if not given:
        return known_reference(env)
    if len(given) != 2 or not all(map(_is_number, given)) or given[0] == given[1]:
        raise UsageError(
            f"{where} has the scores {given}: give random_score and reference_score, two numbers that differ, or none"
        )
    return Reference(float(given[0]), float(given[1]), "the file of tasks")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _mapping(where: str, given: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"{where} must be a mapping with the keys {', '.join(known)}")
    for key in given:
        if key not in known:
            raise UsageError(f"{where} has the key {key!r}: the keys are {', '.join(known)}")
    return given
