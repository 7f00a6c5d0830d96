"""Wrappers that are given to `train` as classes or functions: by the names under which any process can import them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import gymnasium.wrappers.vector

from sf.envs.custom.given import importable_name
from sf.envs.errors import UsageError


def with_names(wrappers: Any) -> Any:
    """What `env_wrappers` is given, with module:Name for each object. Raises UsageError for one that has no such name.

    Whatever is no wrapper stays as it is, for the check of the flag's type.
    """
    items = wrappers if isinstance(wrappers, list | tuple) else [wrappers]
    return [_with_name(item) for item in items]


def _with_name(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {_with_name(name): kwargs for name, kwargs in item.items()}
    if not callable(item):
        return item
    called = getattr(item, "__name__", type(item).__name__)
    for module in (gym.wrappers, gym.wrappers.vector):
        if getattr(module, called, None) is item:
            return f"{module.__name__}:{called}"
    name = importable_name(item)
    if name is None:
        raise UsageError(
            f"env_wrappers has {called}, which other processes cannot import: put it in a file and name it as "
            f"module:{called}, or wrap the environment where it is made, as in train(env=lambda: {called}(MyEnv()))"
        )
    return name
