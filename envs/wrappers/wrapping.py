"""Puts the wrappers of `env_wrappers` around an environment; the groups around it see what comes out.

A class derived from `gymnasium.Wrapper` takes an environment of one agent, one derived from `VectorWrapper` a vector
environment. A function takes any environment and returns one, as those of SuperSuit do. An environment with the API of
gym gets Gymnasium's before either. Any other class with `reset` and `step` takes it as its package gives it.
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import gymnasium.wrappers.vector
from gymnasium.vector import VectorEnv, VectorWrapper

from sf.envs.custom.named_objects import factory, import_module, innermost, split
from sf.envs.errors import EnvError, UsageError, env_exceptions, failure, place_of, summary
from sf.envs.groups import calls
from sf.envs.groups.old_api import as_gymnasium
from sf.envs.options import EnvOptions
from sf.envs.wrappers.named import NamedWrapper

_GYMNASIUM = "gymnasium.wrappers"
_GYMNASIUM_VECTOR = "gymnasium.wrappers.vector"
_A_WRAPPER = "a wrapper (a gymnasium.Wrapper, or another class with reset and step that takes an environment)"


def wrapped(env_id: str, env: Any, options: EnvOptions) -> Any:
    """The environment with its wrappers, the first innermost. Raises UsageError where one cannot be put around it."""
    for wrapper in options.wrappers:
        env = _wrap(env_id, env, wrapper)
    return env


def are_for_vector_envs(options: EnvOptions) -> bool:
    """Returns whether the first wrapper takes a vector environment alone. Raises UsageError where it is not found."""
    return bool(options.wrappers) and _is_kind_of(_find(options.wrappers[0]), VectorWrapper)


def _wrap(env_id: str, env: Any, wrapper: NamedWrapper) -> Any:
    make, what = _find(wrapper), _what(wrapper)
    _require_kind(env_id, env, make, what)
    if _is_kind_of(make, gym.Wrapper) or not isinstance(innermost(make), type):
        env = env if isinstance(env, VectorEnv) or calls.is_match(env) else as_gymnasium(env_id, env)
    kwargs = _as_tuples(wrapper.kwargs) if wrapper.name.startswith(_GYMNASIUM) else wrapper.kwargs
    try:
        inspect.signature(make).bind(env, **kwargs)
    except TypeError as error:
        raise UsageError(f"{what}: {error}: {_arguments(make)}") from None
    except ValueError:  # of what is not written in Python: it says itself what it does not take
        pass
    try:
        made = make(env, **kwargs)
    except (UsageError, EnvError):
        raise
    except env_exceptions() as error:
        if isinstance(failure(env_id, what, error), UsageError):
            raise
        place = place_of(error)
        where = f" ({place})" if place else ""
        raise UsageError(f"{what} around {env_id}: {summary(error)}{where}") from error
    if not calls.is_env(type(made)) or isinstance(made, VectorEnv) != isinstance(env, VectorEnv):
        raise UsageError(f"{what} returned a {type(made).__name__}: return the environment, of the kind that it takes")
    return made


def _find(wrapper: NamedWrapper) -> Callable[..., Any]:
    what = _what(wrapper)
    _require_form(wrapper.name, what)
    module_name, name = split(wrapper.name, what)
    try:
        module = import_module(module_name, what)
    except UsageError as error:
        near = difflib.get_close_matches(module_name, _modules(), n=1, cutoff=0.8)
        if near and isinstance(error.__cause__, ModuleNotFoundError) and near[0] != module_name:
            raise UsageError(f"{what}: {error.__cause__}: did you mean {near[0]}?") from error.__cause__
        raise
    make = factory(module, name, what, lambda kind: calls.is_env(kind) or _has_base(kind), _A_WRAPPER)
    if make is None:
        near = difflib.get_close_matches(name, [each for each in vars(module) if each[0].isupper()], n=1)
        hint = f"did you mean {near[0]}?" if near else "name a class or a function of it"
        raise UsageError(f"{what}: {module_name} has no {name!r}: {hint}")
    kind = innermost(make)
    if isinstance(kind, type) and issubclass(kind, gym.Env | VectorEnv) and not _has_base(kind):
        raise UsageError(
            f"{what}: {name} is an environment, not a wrapper: derive it from gymnasium.Wrapper, or write a function "
            "that takes an environment and returns one"
        )
    return make


def _require_form(name: str, what: str) -> None:
    """Raises UsageError for a name without a colon, with the one that may be meant."""
    if ":" in name:
        return
    module, _, last = name.rpartition(".")
    meant = f"{module or _GYMNASIUM}:{last}" if module or hasattr(gym.wrappers, last) else "my_module:MyWrapper"
    raise UsageError(f"{what} is not of the form module:Name: write {meant}")


def _require_kind(env_id: str, env: Any, make: Callable[..., Any], what: str) -> None:
    """Raises UsageError where a wrapper is for another kind of environment."""
    is_vector, is_match = isinstance(env, VectorEnv), calls.is_match(env)
    if is_vector and _is_kind_of(make, gym.Wrapper):
        raise UsageError(
            f"{what} is for single environments, and {env_id} makes a vector environment: {_GYMNASIUM_VECTOR} has "
            "wrappers of those"
        )
    if not is_vector and _is_kind_of(make, VectorWrapper):
        raise UsageError(
            f"{what} is for vector environments, and {env_id} makes single ones: {_GYMNASIUM} has those of single ones"
        )
    if is_match and _is_kind_of(make, gym.Wrapper):
        raise UsageError(
            f"{what} is for environments of one agent, and {env_id} has several: name one that takes an environment of "
            "PettingZoo and returns one, for example of supersuit"
        )


def _as_tuples(value: Any) -> Any:
    """Returns the value with tuples for lists, which JSON cannot tell apart: Gymnasium refuses a list as a shape."""
    if isinstance(value, dict):
        return {name: _as_tuples(each) for name, each in value.items()}
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _arguments(make: Callable[..., Any]) -> str:
    _, *others = inspect.signature(make).parameters
    return f"its arguments are {', '.join(others)}" if others else "it has no arguments"


def _modules() -> list[str]:
    """Returns those that may be meant by the name of another one."""
    of_working_directory = [name.removesuffix(".py") for name in os.listdir() if name.endswith(".py")]
    return [_GYMNASIUM, _GYMNASIUM_VECTOR, "supersuit", *of_working_directory, *sys.modules]


def _has_base(kind: type) -> bool:
    return issubclass(kind, gym.Wrapper | VectorWrapper)


def _is_kind_of(make: Callable[..., Any], base: type) -> bool:
    kind = innermost(make)
    return isinstance(kind, type) and issubclass(kind, base)


def _what(wrapper: NamedWrapper) -> str:
    return f"env_wrappers {wrapper.name!r}"
