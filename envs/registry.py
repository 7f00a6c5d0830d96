"""Find an environment by its name, and make groups of it.

A name is looked up in this order: what was registered here; the families that come with the package
(`doom_*`, `atari_*` and the other spellings of `envs.atari`, `toy_*`); the spellings of `envs.parallel_names`
for environments of several agents; Gymnasium's registry (`CartPole-v1`, or `module:Env-v0` to import the
module that registers it); at last the packages with an entry point in the group `sf.envs`, each of which
registers its own when it is loaded. Nothing is imported that the environment does not need.

One's own environment takes one line, at the top level of a module that the trainer imports (a script's own
top level is: worker processes import it again):

    register_env("my_env", lambda **kwargs: MyEnv(**kwargs))
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Protocol

import gymnasium as gym
from gymnasium.vector import VectorEnv

from envs.group import EnvGroup, EnvSpec, RenderedGroup
from envs.gym_group import GymGroup
from envs.options import EnvOptions
from envs.parallel_group import ParallelEnv, ParallelGroup
from envs.parallel_names import find_factory
from envs.rendering import film_envs, film_matches, film_vector
from envs.vector_group import VectorGroup

# Modules with ENV_IDS, describe, make_group and make_rendered_group, imported (with their emulators) only when they
# are asked for.
_FAMILIES = (
    (r"doom_", "envs.doom"),
    (r"atari_|ALE/|\w+NoFrameskip-v4$", "envs.atari"),
    (r"toy_match_", "envs.match_toys"),
    (r"toy_", "envs.toys"),
)


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


class MakeRenderedGroup(Protocol):
    def __call__(
        self, env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup: ...


Describe = Callable[[str, EnvOptions], EnvSpec]


@dataclass(frozen=True)
class _Entry:
    describe: Describe
    make_group: MakeGroup
    make_rendered_group: MakeRenderedGroup | None


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


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """`make_group` for a group that can be looked at, and takes more time for a step.

    Raises ValueError as `describe` does, and where nobody has said how to draw the environment.
    """
    make = _find(env_id).make_rendered_group
    if make is None:
        raise ValueError(f"env {env_id!r} cannot be drawn: envs.register it with a make_rendered_group")
    return make(env_id, num_envs, options, seed=seed, first_env_idx=first_env_idx)


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
    _registered[env_id] = _Entry(describe, make_group, make_rendered_group)


def register_env(env_id: str, factory: Callable[..., gym.Env]) -> None:
    """Make the Gymnasium environment that `factory(**options.kwargs)` returns known as `env_id`."""
    _registered[env_id] = _entry_of_singles(GymGroup, film_envs, factory)


def register_parallel_env(env_id: str, factory: Callable[..., ParallelEnv]) -> None:
    """Make the environment of several agents that `factory(**options.kwargs)` returns known as `env_id`.

    It has PettingZoo's ParallelEnv API, or what `envs.parallel_group.ParallelEnv` has of it.
    """
    _registered[env_id] = _entry_of_singles(ParallelGroup, film_matches, factory)


def register_vector_env(env_id: str, factory: Callable[..., VectorEnv]) -> None:
    """Make the vector environment that `factory(num_envs=E, **options.kwargs)` returns known as `env_id`."""

    def make_vector_group(
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup:
        return VectorGroup(env_id, factory(num_envs=num_envs, **options.kwargs), seed, first_env_idx)

    def make_rendered_group(
        env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup:
        return film_vector(env_id, partial(factory, num_envs=num_envs, **options.kwargs), seed, first_env_idx)

    register(
        env_id,
        describe=_describer(make_vector_group),
        make_group=make_vector_group,
        make_rendered_group=make_rendered_group,
    )


def _find(env_id: str) -> _Entry:
    if env_id in _registered:
        return _registered[env_id]
    for pattern, module in _FAMILIES:
        if re.match(pattern, env_id):
            family = importlib.import_module(module)
            if env_id in family.ENV_IDS:
                return _Entry(family.describe, family.make_group, family.make_rendered_group)
    parallel_env = find_factory(env_id)
    if parallel_env is not None:
        return _entry_of_singles(ParallelGroup, film_matches, parallel_env)
    if env_id in gym.registry or _module_registers(env_id):
        return _Entry(_describer(_make_gymnasium_group), _make_gymnasium_group, _make_rendered_gymnasium_group)
    _load_entry_points()
    if env_id in _registered:
        return _registered[env_id]
    known = env_ids()
    nearest = difflib.get_close_matches(env_id, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else "register it with envs.register_env"
    raise ValueError(f"env {env_id!r} is not known: {hint}")


def _module_registers(env_id: str) -> bool:
    """Whether `env_id` is "module:name"; imports the module, which registers the name with Gymnasium."""
    module, colon, name = env_id.partition(":")
    if not colon:
        return False
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"env {env_id!r}: {module} cannot be imported ({error}): install it") from error
    if name not in gym.registry:
        raise ValueError(f"env {env_id!r}: importing {module} did not register {name!r} with Gymnasium")
    return True


def _load_entry_points() -> None:
    for entry_point in entry_points(group="sf.envs"):
        loaded = entry_point.load()  # a module that registers when it is imported, or a function that does
        if callable(loaded):
            loaded()


def _entry_of_singles(
    group_type: type[GymGroup] | type[ParallelGroup], film: Callable[..., RenderedGroup], factory: Callable[..., Any]
) -> _Entry:
    """For environments that are made one by one."""

    def make_group_of_singles(
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup:
        envs = [factory(**options.kwargs) for _ in range(num_envs)]
        return group_type(env_id, envs, seed, first_env_idx, options.env_frameskip or 1)

    def make_rendered_group_of_singles(
        env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup:
        makes = [partial(factory, **options.kwargs)] * num_envs
        return film(env_id, makes, options, seed, first_env_idx)

    return _Entry(_describer(make_group_of_singles), make_group_of_singles, make_rendered_group_of_singles)


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


def _make_rendered_gymnasium_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Single environments where there are any: few vectorised ones draw."""
    kwargs: dict[str, Any] = options.kwargs
    gym_spec = gym.registry[env_id.rpartition(":")[2]]
    try:
        if gym_spec.entry_point is None:
            mode = "vector_entry_point"
            make_vec = partial(gym.make_vec, env_id, num_envs=num_envs, vectorization_mode=mode, **kwargs)
            return film_vector(env_id, make_vec, seed, first_env_idx)
        makes = [partial(gym.make, env_id, disable_env_checker=True, **kwargs)] * num_envs
        return film_envs(env_id, makes, options, seed, first_env_idx)
    except (gym.error.Error, ImportError, TypeError) as error:
        raise ValueError(f"env {env_id!r} with env_kwargs {options.env_kwargs}: {error}") from error
