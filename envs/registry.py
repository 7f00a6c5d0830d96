"""Find an environment by its name, and make groups of it.

A name is looked up in this order: what was registered here; the families that come with the package
(`doom_*`, `atari_*` and the other spellings of `envs.atari`, `toy_*`; `doom:my.cfg`; `envpool:NAME`); the spellings of
`envs.parallel_names` for environments of several agents; Gymnasium's registry (`CartPole-v1`); `module:Name`, which
imports the module and takes what it registers under that name, here or with Gymnasium, or its class or function of
that name; at last the packages with an entry point in the group `sf.envs`, each of which registers its own when it is
loaded. Nothing is imported that the environment does not need.

One's own environment takes one line, at the top level of a module that the trainer imports (a script's own
top level is: worker processes import it again):

    @register_env("my_env")
    class MyEnv(gymnasium.Env): ...
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeVar

import gymnasium as gym
from gymnasium.vector import VectorEnv

from envs.group import EnvGroup, EnvSpec
from envs.gym_group import GymGroup
from envs.named_objects import attribute, import_module
from envs.options import EnvOptions
from envs.parallel_group import ParallelEnv, ParallelGroup
from envs.parallel_names import find_factory
from envs.vector_group import VectorGroup

# Modules with ENV_IDS, describe and make_group, imported (with their emulators) only when they are asked for.
_FAMILIES = (
    (r"doom_", "envs.doom"),
    (r"atari_|ALE/|\w+NoFrameskip-v4$", "envs.atari"),
    (r"toy_match_", "envs.match_toys"),
    (r"toy_", "envs.toys"),
)
# Modules with describe and make_group alone: what follows the prefix is not for us to look up.
_PREFIXES = {"doom:": "envs.doom", "envpool:": "envs.envpool_group"}

GymFactory = TypeVar("GymFactory", bound=Callable[..., gym.Env])
ParallelFactory = TypeVar("ParallelFactory", bound=Callable[..., ParallelEnv])
VectorFactory = TypeVar("VectorFactory", bound=Callable[..., VectorEnv])


class MakeGroup(Protocol):
    def __call__(
        self,
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup: ...


Describe = Callable[[str, EnvOptions], EnvSpec]


@dataclass(frozen=True)
class _Entry:
    describe: Describe
    make_group: MakeGroup


_registered: dict[str, _Entry] = {}


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """What one actor of `env_id` sees and does.

    Raises ValueError for a name that is not known, or an environment that cannot be made or used.
    """
    return _find(env_id).describe(env_id, options)


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """A group of `num_envs` environments, the first of which is number `first_env_idx` of the whole run.

    core: the core that the calling process is pinned to, for environments with processes or threads of their
    own. Raises ValueError as `describe` does.
    """
    make = _find(env_id).make_group
    return make(env_id, num_envs, options, seed=seed, first_env_idx=first_env_idx, core=core)


def env_ids() -> list[str]:
    """All names that are known: it imports all families and entry points."""
    _load_entry_points()
    families = [name for _, module in _FAMILIES for name in importlib.import_module(module).ENV_IDS]
    return sorted({*_registered, *families, *gym.registry})


def register(env_id: str, *, describe: Describe, make_group: MakeGroup) -> None:
    """Make `env_id` known. A later registration of the same name replaces the earlier one."""
    _registered[env_id] = _Entry(describe, make_group)


def register_env(env_id: str, factory: GymFactory | None = None) -> Callable[[GymFactory], GymFactory]:
    """Make the Gymnasium environment that `factory(**options.kwargs)` returns known as `env_id`.

    Without `factory` it decorates one, a class or a function.
    """
    return _registrar(env_id, factory, lambda own: _entry_of_singles(GymGroup, own))


def register_parallel_env(
    env_id: str, factory: ParallelFactory | None = None
) -> Callable[[ParallelFactory], ParallelFactory]:
    """Make the environment of several agents that `factory(**options.kwargs)` returns known as `env_id`.

    It has PettingZoo's ParallelEnv API, or what `envs.parallel_group.ParallelEnv` has of it. Without `factory` it
    decorates one.
    """
    return _registrar(env_id, factory, lambda own: _entry_of_singles(ParallelGroup, own))


def register_vector_env(env_id: str, factory: VectorFactory | None = None) -> Callable[[VectorFactory], VectorFactory]:
    """Make the vector environment that `factory(num_envs=E, **options.kwargs)` returns known as `env_id`.

    Without `factory` it decorates one.
    """
    return _registrar(env_id, factory, _entry_of_vector)


def _registrar(env_id: str, factory: Any, entry_of: Callable[[Any], _Entry]) -> Callable[[Any], Any]:
    def decorate(decorated: Any) -> Any:
        _registered[env_id] = entry_of(decorated)
        return decorated

    if factory is not None:
        decorate(factory)
    return decorate


def _find(env_id: str) -> _Entry:
    entry = _registered.get(env_id) or _find_in_family(env_id) or _find_by_spelling(env_id)
    if entry is None:
        _load_entry_points()
        entry = _registered.get(env_id)
    if entry is None:
        nearest = difflib.get_close_matches(env_id, env_ids(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "register it with envs.register_env"
        raise ValueError(
            f"env {env_id!r} is not known: {hint} (one of your own must be in a file that other processes can import, "
            "which a notebook is not: name it as module:Name)"
        )
    return entry


def _find_in_family(env_id: str) -> _Entry | None:
    modules = [module for prefix, module in _PREFIXES.items() if env_id.startswith(prefix)]
    modules += [
        module
        for pattern, module in _FAMILIES
        if re.match(pattern, env_id) and env_id in importlib.import_module(module).ENV_IDS
    ]
    if not modules:
        return None
    family = importlib.import_module(modules[0])
    return _Entry(family.describe, family.make_group)


def _find_by_spelling(env_id: str) -> _Entry | None:
    parallel_env = find_factory(env_id)
    if parallel_env is not None:
        return _entry_of_singles(ParallelGroup, parallel_env)
    if env_id in gym.registry:
        return _Entry(_describer(_make_gymnasium_group), _make_gymnasium_group)
    return _find_in_module(env_id) if ":" in env_id else None


def _find_in_module(env_id: str) -> _Entry:
    """By what importing the module of "module:Name" registers, or its class or function of that name."""
    module_name, _, name = env_id.partition(":")
    module = import_module(module_name, f"env {env_id!r}")
    if name in _registered:
        return _registered[name]
    if name in gym.registry:
        return _Entry(_describer(_make_gymnasium_group), _make_gymnasium_group)
    factory = attribute(module, name)
    if factory is None:
        raise ValueError(
            f"env {env_id!r}: importing {module_name} did not register {name!r}, and it has no class or function of "
            "that name"
        )
    if inspect.isclass(factory) and issubclass(factory, VectorEnv):
        return _entry_of_vector(factory)
    return _entry_of_singles(_group_of_either_kind, factory)


def _load_entry_points() -> None:
    for entry_point in entry_points(group="sf.envs"):
        loaded = entry_point.load()  # a module that registers when it is imported, or a function that does
        if callable(loaded):
            loaded()


def _group_of_either_kind(env_id: str, envs: list[Any], seed: int, first_env_idx: int, frameskip: int) -> EnvGroup:
    group_type = ParallelGroup if hasattr(envs[0], "possible_agents") else GymGroup
    return group_type(env_id, envs, seed, first_env_idx, frameskip)


def _entry_of_singles(group: Callable[..., EnvGroup], factory: Callable[..., Any]) -> _Entry:
    """For environments that are made one by one. group: makes one of them."""

    def make_group_of_singles(
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup:
        _require_arguments(env_id, factory, options.kwargs)
        envs = [factory(**options.kwargs) for _ in range(num_envs)]
        return group(env_id, envs, seed, first_env_idx, options.env_frameskip or 1)

    return _Entry(_describer(make_group_of_singles), make_group_of_singles)


def _entry_of_vector(factory: Callable[..., VectorEnv]) -> _Entry:
    def make_vector_group(
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup:
        kwargs = {"num_envs": num_envs, **options.kwargs}
        _require_arguments(env_id, factory, kwargs)
        return VectorGroup(env_id, factory(**kwargs), seed, first_env_idx)

    return _Entry(_describer(make_vector_group), make_vector_group)


def _require_arguments(env_id: str, factory: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    """Raises ValueError for arguments that it does not take; a TypeError from within it is its own affair."""
    try:
        inspect.signature(factory).bind(**kwargs)
    except TypeError as error:
        raise ValueError(f"env {env_id!r} with env_kwargs {kwargs}: {error}") from None


def _describer(make: MakeGroup) -> Describe:
    def describe_by_making(env_id: str, options: EnvOptions) -> EnvSpec:
        group = make(env_id, 1, options, seed=0, first_env_idx=0)
        group.close()
        return group.spec

    return describe_by_making


def _make_gymnasium_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """Gymnasium's own vectorised version where there is one, else single environments."""
    kwargs: dict[str, Any] = options.kwargs
    frameskip = options.env_frameskip or 1
    gym_spec = gym.registry[env_id.rpartition(":")[2]]
    try:
        if gym_spec.vector_entry_point is not None and frameskip == 1:
            vector_env = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs)
            return VectorGroup(env_id, vector_env, seed, first_env_idx)
        # The group checks what it needs itself, at a fraction of the time that the passive checker takes.
        envs = [gym.make(env_id, disable_env_checker=True, **kwargs) for _ in range(num_envs)]
    except (gym.error.Error, ImportError, TypeError) as error:
        raise ValueError(f"env {env_id!r} with env_kwargs {options.env_kwargs}: {error}") from error
    return GymGroup(env_id, envs, seed, first_env_idx, frameskip)
