"""Find an environment by its name, and make groups of it.

A name is looked up in this order: what was registered here; the families that come with the package
(`doom_*`, `atari_*` and the other spellings of `sf.envs.atari`, `toy_*`; `doom:my.cfg`; `envpool:NAME`); those of
`sf.envs.parallel_names` for environments of several agents; Gymnasium's registry (`CartPole-v1`); `module:Name`, which
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
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.vector import VectorEnv

from sf.envs.entries import (
    AN_ENV,
    Describe,
    Entry,
    MakeGroup,
    MakeRenderedGroup,
    entry_of_either,
    entry_of_envs,
    entry_of_matches,
    entry_of_vector,
    gymnasium_entry,
    is_env,
)
from sf.envs.errors import UsageError, call_of
from sf.envs.group import EnvGroup, EnvSpec, RenderedGroup
from sf.envs.named_objects import factory, file_of_module, import_module, meant, split
from sf.envs.options import EnvOptions
from sf.envs.parallel_group import ParallelEnv
from sf.envs.parallel_names import PETTINGZOO, find_factory

# Modules with ENV_IDS, describe, make_group and, where they can be drawn, make_rendered_group, imported (with their
# emulators) only when they are asked for.
_FAMILIES = (
    (r"doom_", "sf.envs.doom"),
    (r"atari_|ALE/|\w+NoFrameskip-v4$", "sf.envs.atari"),
    (r"toy_match_", "sf.envs.match_toys"),
    (r"toy_", "sf.envs.toys"),
)
# The same without ENV_IDS: what follows the prefix is not for us to look up.
_PREFIXES = {"doom:": "sf.envs.doom", "envpool:": "sf.envs.envpool_group"}
# Ids of Gymnasium whose environment imports what its arguments name.
_WRAPPERS_OF_OLD_IDS = ("GymV21Environment-v0", "GymV26Environment-v0")

GymFactory = TypeVar("GymFactory", bound=Callable[..., gym.Env])
ParallelFactory = TypeVar("ParallelFactory", bound=Callable[..., ParallelEnv])
VectorFactory = TypeVar("VectorFactory", bound=Callable[..., VectorEnv])


_registered: dict[str, Entry] = {}


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """What one actor of `env_id` sees and does.

    Raises UsageError for a name that is not known or an environment that cannot be used, and EnvError for one that
    raises as it is made.
    """
    with call_of(env_id, "its set-up"):
        return _find(env_id).describe(env_id, options)


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """A group of `num_envs` environments, the first of which is number `first_env_idx` of the whole run.

    core: the core that the calling process is pinned to, for environments with processes or threads of their
    own. Raises as `describe` does.
    """
    with call_of(env_id, "its set-up"):
        make = _find(env_id).make_group
        return make(env_id, num_envs, options, seed=seed, first_env_idx=first_env_idx, core=core)


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """`make_group` for a group that can be looked at, and takes more time for a step.

    Raises as `describe` does, and UsageError where nobody has said how to draw the environment.
    """
    with call_of(env_id, "its set-up"):
        make = _find(env_id).make_rendered_group
        if make is None:
            raise UsageError(f"env {env_id!r} cannot be drawn: give it, or its family, a make_rendered_group")
        return make(env_id, num_envs, options, seed=seed, first_env_idx=first_env_idx)


def require_name(env_id: str) -> None:
    """Raises ValueError for what cannot be the name of an environment."""
    if not re.search(r"\w", env_id):
        raise UsageError(
            f"env {env_id!r} is no name: name an environment, for example CartPole-v1 (sf-envs lists them)"
        )
    if _is_in_module(env_id):
        split(env_id, f"env {env_id!r}")


def code_of(env_id: str) -> str | None:
    """The file of the code that this name has run, beside packages that are installed for it; None: there is none.

    Of `module:Name` it is that of the module, if there is one; of `doom:my.cfg` the .cfg file, which can give the
    engine any arguments. Nothing is imported.
    """
    if env_id in _registered:
        return None
    if env_id in _WRAPPERS_OF_OLD_IDS:
        return env_id
    prefix, colon, name = env_id.partition(":")
    if prefix == "doom" and colon:
        return str(Path(name).resolve()) if "/" in name or Path(name).exists() else None
    if not _is_in_module(env_id):
        return None
    return file_of_module(prefix)


def env_ids() -> list[str]:
    """All names that are known: it imports all families and entry points."""
    _load_entry_points()
    families = [name for _, module in _FAMILIES for name in importlib.import_module(module).ENV_IDS]
    return sorted({*_registered, *families, *gym.registry})


def register(
    env_id: str, *, describe: Describe, make_group: MakeGroup, make_rendered_group: MakeRenderedGroup | None = None
) -> None:
    """Make `env_id` known. A later registration of the same name replaces the earlier one.

    make_rendered_group: for those who want to look at it.
    """
    _registered[env_id] = Entry(describe, make_group, make_rendered_group)


def register_env(env_id: str, factory: GymFactory | None = None) -> Callable[[GymFactory], GymFactory]:
    """Make the Gymnasium environment that `factory(**options.kwargs)` returns known as `env_id`.

    Without `factory` it decorates one, a class or a function.
    """
    return _registrar(env_id, factory, entry_of_envs)


def register_parallel_env(
    env_id: str, factory: ParallelFactory | None = None
) -> Callable[[ParallelFactory], ParallelFactory]:
    """Make the environment of several agents that `factory(**options.kwargs)` returns known as `env_id`.

    It has PettingZoo's ParallelEnv or AECEnv API, or the members of
    `sf.envs.parallel_group.ParallelEnv` or `sf.envs.turns.TurnEnv`. Without `factory` it decorates one.
    """
    return _registrar(env_id, factory, entry_of_matches)


def register_vector_env(env_id: str, factory: VectorFactory | None = None) -> Callable[[VectorFactory], VectorFactory]:
    """Make the vector environment that `factory(num_envs=E, **options.kwargs)` returns known as `env_id`.

    Without `factory` it decorates one.
    """
    return _registrar(env_id, factory, entry_of_vector)


def _registrar(env_id: str, factory: Any, entry_of: Callable[[Any], Entry]) -> Callable[[Any], Any]:
    def decorate(decorated: Any) -> Any:
        _registered[env_id] = entry_of(decorated)
        return decorated

    if factory is not None:
        decorate(factory)
    return decorate


def _find(env_id: str) -> Entry:
    require_name(env_id)
    entry = _registered.get(env_id) or _find_in_family(env_id) or _find_by_spelling(env_id)
    if entry is None:
        _load_entry_points()
        entry = _registered.get(env_id)
    if entry is None:
        own = meant(env_id)
        if own is not None:
            raise UsageError(f"env {env_id!r} is not known: one of your own is named as module:Name, here {own}")
        nearest = difflib.get_close_matches(env_id, env_ids(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "register it with envs.register_env"
        raise UsageError(
            f"env {env_id!r} is not known: {hint} (one of your own must be in a file that other processes can import, "
            "which a notebook is not: name it as module:Name)"
        )
    return entry


def _find_in_family(env_id: str) -> Entry | None:
    modules = [module for prefix, module in _PREFIXES.items() if env_id.startswith(prefix)]
    modules += [
        module
        for pattern, module in _FAMILIES
        if re.match(pattern, env_id) and env_id in importlib.import_module(module).ENV_IDS
    ]
    if not modules:
        return None
    family = importlib.import_module(modules[0])
    return Entry(family.describe, family.make_group, getattr(family, "make_rendered_group", None))


def _find_by_spelling(env_id: str) -> Entry | None:
    parallel_env = find_factory(env_id)
    if parallel_env is not None:
        return entry_of_matches(parallel_env)
    if env_id in gym.registry:
        return gymnasium_entry()
    return _find_in_module(env_id) if ":" in env_id else None


def _is_in_module(env_id: str) -> bool:
    """Whether what is before its colon is a module to import."""
    prefix, colon, _ = env_id.partition(":")
    return bool(colon) and env_id not in _registered and f"{prefix}:" not in _PREFIXES and prefix != PETTINGZOO


def _find_in_module(env_id: str) -> Entry:
    """Resolve "module:Name": import the module; take what it registered as Name, else its attribute of that name."""
    what = f"env {env_id!r}"
    module_name, name = split(env_id, what)
    module = import_module(module_name, what)
    if name in _registered:
        return _registered[name]
    if name in gym.registry:
        return gymnasium_entry()
    make = factory(module, name, what, is_env, AN_ENV)
    if make is None:
        raise UsageError(
            f"{what}: importing {module_name} did not register {name!r}, and it has no class or function of that name"
        )
    if inspect.isclass(make) and issubclass(make, VectorEnv):
        return entry_of_vector(make)
    return entry_of_either(make)


def _load_entry_points() -> None:
    for entry_point in entry_points(group="sf.envs"):
        loaded = entry_point.load()  # a module that registers when it is imported, or a function that does
        if callable(loaded):
            loaded()
