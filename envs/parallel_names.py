"""Names of PettingZoo's environments, and of others with its ParallelEnv API, that need no registration.

`pettingzoo:butterfly/knights_archers_zombies_v11` is an id of PettingZoo's own registry.
`mpe2.simple_spread_v3:parallel_env` is the function `parallel_env(**kwargs)` of a module, as other packages have it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from sf.envs.entries import AN_ENV, is_env
from sf.envs.errors import UsageError, is_refusal_of_arguments
from sf.envs.named_objects import factory, import_module
from sf.envs.parallel_group import ParallelEnv

PETTINGZOO = "pettingzoo"  # before the colon: the rest is an id there
_FUNCTION = "parallel_env"


def find_factory(env_id: str) -> Callable[..., ParallelEnv] | None:
    """What makes the environment from its keyword arguments; None for a name of another kind.

    It raises UsageError, as its result does, where a package is missing or has no such environment, and where the
    environment does not take its arguments.
    """
    package, colon, name = env_id.partition(":")
    if colon and package == PETTINGZOO:
        return lambda **kwargs: _from_pettingzoo(env_id, name, kwargs)
    if name == _FUNCTION:
        return lambda **kwargs: _from_module(env_id, package, kwargs)
    return None


def _from_pettingzoo(env_id: str, name: str, kwargs: dict[str, Any]) -> ParallelEnv:
    try:
        registry = importlib.import_module("pettingzoo.env_registry.registration")
        exceptions = importlib.import_module("pettingzoo.env_registry.exceptions")
    except ImportError as error:
        raise UsageError(f"env {env_id!r}: {error}: pip install 'pettingzoo>=1.27'") from error
    try:
        try:
            return registry.make("parallel", name, **kwargs)
        except exceptions.NameNotFound:
            return registry.make("aec", name, **kwargs)  # its agents take turns: see envs.turns
    except (exceptions.PettingZooRegistryError, ImportError, TypeError) as error:
        if isinstance(error, TypeError) and not is_refusal_of_arguments(error):
            raise
        raise UsageError(f"env {env_id!r} with env_kwargs {kwargs}: {error}") from error


def _from_module(env_id: str, name: str, kwargs: dict[str, Any]) -> ParallelEnv:
    module = import_module(name, f"env {env_id!r}")
    make = factory(module, _FUNCTION, f"env {env_id!r}", is_env, AN_ENV)
    if make is None:
        raise UsageError(f"env {env_id!r}: the module {name} has no function {_FUNCTION}: name the module that has")
    try:
        return make(**kwargs)
    except (ImportError, TypeError) as error:
        if isinstance(error, TypeError) and not is_refusal_of_arguments(error):
            raise
        raise UsageError(f"env {env_id!r} with env_kwargs {kwargs}: {error}") from error
