"""Environments and wrappers that are given as Python objects: a class, or a function that makes one.

Other processes cannot import what a notebook defines, so an environment goes to them among their arguments, pickled by
cloudpickle. No file holds it: config.yaml and checkpoints have its name, such as `python:Walk`, and to resume such a
run it has to be given again.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle
import gymnasium as gym
import gymnasium.wrappers.vector
from gymnasium.vector import VectorEnv

from sf.envs.custom.named_objects import file_of_module, innermost
from sf.envs.entries import AN_ENV, entry_of_either, entry_of_vector, is_env, makes_vector
from sf.envs.errors import UsageError, summary
from sf.envs.family import Entry, Family

_PREFIX = "python:"


class GivenEnv:
    """A class or function, and its pickled form. Unpickled in another process, it is known there under its name."""

    def __init__(self, name: str, pickled: bytes) -> None:
        self.name = name
        self.pickled = pickled
        _given[name] = self

    def __reduce__(self) -> tuple[type[GivenEnv], tuple[str, bytes]]:
        return GivenEnv, (self.name, self.pickled)

    @functools.cached_property
    def factory(self) -> Callable[..., Any]:
        """Unpickled when it is first needed: what fails then is the failure of an environment, with its traceback."""
        return cloudpickle.loads(self.pickled)


_given: dict[str, GivenEnv] = {}


def given_env(env_id: str) -> GivenEnv | None:
    """Returns what was given under this name, for the arguments of a process; None: the name says all."""
    return _given.get(env_id)


def give(env: Any) -> str:
    """Make it known in this process, in place of what had its name before. Returns the name.

    Raises UsageError for what makes no environment, or cannot be pickled.
    """
    require_factory(env)
    name = _PREFIX + re.sub(r"\W", "", _name(env))
    try:
        pickled = cloudpickle.dumps(env)
    except Exception as error:  # whatever its parts raise
        raise UsageError(
            f"env {_name(env)} cannot be sent to other processes ({summary(error)}): make such objects in its "
            "__init__, not outside of it"
        ) from error
    GivenEnv(name, pickled).factory = env
    return name


def require_factory(env: Any) -> None:
    """Raises UsageError for anything but the class of an environment, or a function that may make one."""
    if isinstance(env, type) and not is_env(env):
        raise UsageError(f"env is the class {env.__name__}, which is not {AN_ENV}: give the class of one")
    if not isinstance(env, type) and (is_env(type(env)) or not callable(env)):
        raise UsageError(
            f"env is an object of the class {type(env).__name__}: every process makes environments of its own, so give "
            "the class, or a function that makes one, without calling it"
        )


def importable_name(env: Callable[..., Any]) -> str | None:
    """module:Name, where every process can import it by that and gets the same; None where not."""
    module_name, name = getattr(env, "__module__", None), getattr(env, "__qualname__", "")
    module = sys.modules.get(module_name or "")
    top = (module_name or "").partition(".")[0]
    is_there: bool = getattr(module, name, None) is env and top not in ("__main__", "__mp_main__")
    if not is_there or top in sys.stdlib_module_names or file_of_module(top) is None:
        return None
    return f"{module_name}:{name}"


def named_wrappers(wrappers: Any) -> Any:
    """Returns the wrappers of `env_wrappers`, with module:Name in the place of each class or function.

    Raises UsageError for one that other processes cannot import by such a name.

    What is no wrapper stays as it is, for the check of the flag's type.
    """
    items = wrappers if isinstance(wrappers, list | tuple) else [wrappers]
    return [_named_wrapper(item) for item in items]


def _named_wrapper(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {_named_wrapper(name): kwargs for name, kwargs in item.items()}
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


def _find(env_id: str) -> Entry:
    given = _given.get(env_id)
    if given is None:
        name = env_id.removeprefix(_PREFIX)
        raise UsageError(
            f"env {env_id!r} was given to train as a Python object, which no file keeps: give it again, as "
            f"train(env={name}), or put it in a file for new runs, and name it as module:{name}"
        )
    if makes_vector(given.factory):
        return entry_of_vector(given.factory)
    return entry_of_either(_of_one(given.factory))


def _of_one(factory: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(factory)
    def make(**kwargs: Any) -> Any:
        env = factory(**kwargs)
        if isinstance(env, VectorEnv):
            raise UsageError(
                f"env {_name(factory)} makes a vector environment: give it an argument num_envs, the number of its "
                "environments"
            )
        return env

    return make


def _name(factory: Any) -> str:
    inner = innermost(factory)
    return getattr(inner, "__name__", type(inner).__name__)


GIVEN = Family(
    name="given",
    about="python:Name, given as an object: train(env=Name)",
    pattern=_PREFIX + ".*",
    find=_find,
)
