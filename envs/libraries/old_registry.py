"""The registry of the package gym, which packages that are older than Gymnasium register with."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from sf.envs.entries import entry_of_envs
from sf.envs.family import Entry
from sf.envs.groups.old_api import as_gymnasium


def find_in_old_registry(env_id: str) -> Entry | None:
    """The entry of an id in the registry of the package gym, if a package has imported that; else None."""
    registry = getattr(sys.modules.get("gym.envs.registration"), "registry", {})
    spec = getattr(registry, "env_specs", registry).get(env_id)  # before gym 0.26 it was an object of its own
    return None if spec is None or spec.entry_point is None else entry_of_envs(_factory(spec))


def _factory(spec: Any) -> Callable[..., Any]:
    fixed = getattr(spec, "kwargs", None) or getattr(spec, "_kwargs", {})

    def make(**kwargs: Any) -> gym.Env:
        creator = spec.entry_point
        if isinstance(creator, str):
            module, _, name = creator.partition(":")
            creator = getattr(importlib.import_module(module), name)
        env = as_gymnasium(spec.id, creator(**{**fixed, **kwargs}))
        return env if spec.max_episode_steps is None else gym.wrappers.TimeLimit(env, spec.max_episode_steps)

    return make
