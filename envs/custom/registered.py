"""Names that are registered: by a script or a module, or by an installed package through an entry point.

One's own environment takes one line, at the top level of a module that the trainer imports (a script's own
top level is one: worker processes import it again):

    @register_env("my_env")
    class MyEnv(gymnasium.Env): ...
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.vector import VectorEnv

from sf.envs.entries import entry_of_envs, entry_of_matches, entry_of_vector
from sf.envs.family import Describe, Entry, Family, MakeGroup, MakeRenderedGroup
from sf.envs.groups.parallel import ParallelEnv

GymFactory = TypeVar("GymFactory", bound=Callable[..., gym.Env])
ParallelFactory = TypeVar("ParallelFactory", bound=Callable[..., ParallelEnv])
VectorFactory = TypeVar("VectorFactory", bound=Callable[..., VectorEnv])

registered: dict[str, Entry] = {}
"""By name. It goes before every family."""


def register(
    env_id: str, *, describe: Describe, make_group: MakeGroup, make_rendered_group: MakeRenderedGroup | None = None
) -> None:
    """Make `env_id` known, in the place of an earlier one. make_rendered_group: None if it cannot be drawn."""
    registered[env_id] = Entry(describe, make_group, make_rendered_group)


def register_env(env_id: str, factory: GymFactory | None = None) -> Callable[[GymFactory], GymFactory]:
    """Make the Gymnasium environment that `factory(**options.kwargs)` returns known as `env_id`.

    Without `factory` it decorates one, a class or a function.
    """
    return _registrar(env_id, factory, entry_of_envs)


def register_parallel_env(
    env_id: str, factory: ParallelFactory | None = None
) -> Callable[[ParallelFactory], ParallelFactory]:
    """Make the environment of several agents that `factory(**options.kwargs)` returns known as `env_id`.

    It has PettingZoo's ParallelEnv or AECEnv API, or the members of `sf.envs.ParallelEnv` or `sf.envs.TurnEnv`. Without
    `factory` it decorates one.
    """
    return _registrar(env_id, factory, entry_of_matches)


def register_vector_env(env_id: str, factory: VectorFactory | None = None) -> Callable[[VectorFactory], VectorFactory]:
    """Make the vector environment that `factory(num_envs=E, **options.kwargs)` returns known as `env_id`.

    Without `factory` it decorates one.
    """
    return _registrar(env_id, factory, entry_of_vector)


def _registrar(env_id: str, factory: Any, entry_of: Callable[[Any], Entry]) -> Callable[[Any], Any]:
    def decorate(decorated: Any) -> Any:
        registered[env_id] = entry_of(decorated)
        return decorated

    if factory is not None:
        decorate(factory)
    return decorate


def _find(env_id: str) -> Entry | None:
    _load_entry_points()
    return registered.get(env_id)


def _env_ids() -> list[str]:
    _load_entry_points()
    return list(registered)


def _load_entry_points() -> None:
    for entry_point in entry_points(group="sf.envs"):
        loaded = entry_point.load()  # a module that registers when it is imported, or a function that does
        if callable(loaded):
            loaded()


REGISTERED = Family(
    name="registered",
    about="by installed packages, through the entry point sf.envs",
    pattern=r"[^:]*",
    find=_find,
    env_ids=_env_ids,
)
