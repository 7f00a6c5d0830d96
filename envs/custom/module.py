"""Environments by `module:Name`: the module is imported, and nothing need be registered.

`my_module:MyEnv` is a class or a function of the module, or a name that the module registers, here or with Gymnasium.
`mpe2.simple_spread_v3:parallel_env` is the function by which many packages make their environment of several agents.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from sf.envs.custom.named_objects import did_you_mean, factory, file_of_module, import_module, split
from sf.envs.custom.registered import registered
from sf.envs.entries import AN_ENV, entry_of_either, entry_of_matches, entry_of_vector, is_env, makes_vector
from sf.envs.errors import UsageError, is_refusal_of_arguments
from sf.envs.family import Entry, Family
from sf.envs.groups.parallel import ParallelEnv
from sf.envs.libraries.gymnasium import GYMNASIUM_ENTRY
from sf.envs.libraries.packages import find_in_old_registry

_PARALLEL_ENV = "parallel_env"


def _find(env_id: str) -> Entry:
    """Returns what the module registered as Name, else its attribute of that name. Raises UsageError without either."""
    what = f"env {env_id!r}"
    module_name, name = split(env_id, what)
    if name == _PARALLEL_ENV:
        return entry_of_matches(lambda **kwargs: _make_parallel_env(module_name, what, kwargs))
    module = import_module(module_name, what)
    if name in registered:
        return registered[name]
    if name in gym.registry:
        return GYMNASIUM_ENTRY
    make = factory(module, name, what, is_env, AN_ENV)
    if make is None:
        in_old_registry = find_in_old_registry(name)
        if in_old_registry is not None:
            return in_old_registry
        raise UsageError(
            f"{what}: importing {module_name} did not register {name!r}, and it has no class or function of that name"
            f"{did_you_mean(module_name, name, vars(module))}"
        )
    if makes_vector(make):
        return entry_of_vector(make)
    return entry_of_either(make)


def _make_parallel_env(module_name: str, what: str, kwargs: dict[str, Any]) -> ParallelEnv:
    module = import_module(module_name, what)
    make = factory(module, _PARALLEL_ENV, what, is_env, AN_ENV)
    if make is None:
        raise UsageError(f"{what}: the module {module_name} has no function {_PARALLEL_ENV}: name the module that has")
    try:
        return make(**kwargs)
    except (ImportError, TypeError) as error:
        if isinstance(error, TypeError) and not is_refusal_of_arguments(error):
            raise
        raise UsageError(f"{what} with env_kwargs {kwargs}: {error}") from error


MODULE = Family(
    name="module",
    about="module:Name",
    pattern=r"[^:]*:.*",
    find=_find,
    code_of=lambda env_id: file_of_module(env_id.partition(":")[0]),
)
