"""Entries of environments that a factory makes: single ones, matches, and vector environments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from gymnasium.vector import VectorEnv

from sf.envs.custom.named_objects import innermost
from sf.envs.errors import UsageError, call_of
from sf.envs.family import Describe, Entry, MakeGroup
from sf.envs.group import EnvGroup, EnvSpec, RenderedGroup
from sf.envs.groups import calls
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.old_api import as_gymnasium
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.tuple_agents import agents_of, has_several_agents
from sf.envs.groups.turns import as_parallel
from sf.envs.groups.vector import VectorGroup, require_num_envs, require_single_frames
from sf.envs.options import EnvOptions
from sf.envs.remarks import handed_to
from sf.envs.rendering.cameras import EnvCamera, MatchCamera
from sf.envs.rendering.filming import film_envs, film_vector, filmed
from sf.envs.wrappers.wrapping import wrapped

is_env = calls.is_env
AN_ENV = "an environment (it has no reset and step)"  # for messages: what `is_env` asks for


def makes_vector(factory: Callable[..., Any]) -> bool:
    """Returns whether it makes vector environments: their class, or a function with an argument `num_envs`."""
    kind = innermost(factory)
    if isinstance(kind, type):
        return issubclass(kind, VectorEnv)
    try:
        return "num_envs" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # of a function that is not written in Python
        return False


def entry_of_envs(factory: Callable[..., Any]) -> Entry:
    """Returns the entry of Gymnasium environments that `factory(**options.kwargs)` makes one by one."""
    return _entry_of_singles(group_of_envs, factory)


def entry_of_matches(factory: Callable[..., Any]) -> Entry:
    """Returns the entry of environments of several agents that `factory(**options.kwargs)` makes one by one."""
    return _entry_of_singles(group_of_matches, factory)


def entry_of_either(factory: Callable[..., Any]) -> Entry:
    """Returns the entry of a factory of single environments or of matches: the first that it makes shows which."""
    return _entry_of_singles(_group_of_either_kind, factory)


def entry_of_vector(factory: Callable[..., VectorEnv]) -> Entry:
    """Returns the entry of vector environments that `factory(num_envs=E, **options.kwargs)` makes."""

    def make_vector_group(
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup:
        env = calls.make(env_id, factory, _vector_arguments(env_id, factory, num_envs, options))
        require_num_envs(env_id, env, num_envs)
        env = wrapped(env_id, env, options)
        return VectorGroup(env_id, env, seed, first_env_idx, strict_spaces=options.strict_spaces)

    def make_rendered_vector_group(
        env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup:
        kwargs = _vector_arguments(env_id, factory, num_envs, options)
        return film_vector(env_id, partial(factory, **kwargs), num_envs, options, seed, first_env_idx)

    return Entry(describer(make_vector_group), make_vector_group, make_rendered_vector_group, takes_wrappers=True)


def _vector_arguments(
    env_id: str, factory: Callable[..., VectorEnv], num_envs: int, options: EnvOptions
) -> dict[str, Any]:
    require_single_frames(env_id, options.env_frameskip)
    if "num_envs" in options.kwargs:
        raise UsageError(f"{env_id}: env_kwargs has 'num_envs', which --num_envs_per_worker decides: leave it out")
    kwargs = {"num_envs": num_envs, **options.kwargs}
    require_arguments(env_id, factory, kwargs)
    return kwargs


def _entry_of_singles(group_of: Callable[..., Any], factory: Callable[..., Any]) -> Entry:
    """group_of: makes a group of environments, such as `group_of_envs`."""

    def make_group_of_singles(
        env_id: str,
        num_envs: int,
        options: EnvOptions,
        *,
        seed: int,
        first_env_idx: int,
        core: int | None = None,
    ) -> EnvGroup:
        require_arguments(env_id, factory, options.kwargs)
        makes = [partial(calls.make, env_id, factory, options.kwargs)] * num_envs
        with calls.made(env_id, makes, lambda env: wrapped(env_id, env, options)) as envs:
            return group_of(env_id, envs, options, seed, first_env_idx)

    def make_rendered_group_of_singles(
        env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup:
        require_arguments(env_id, factory, options.kwargs)
        makes = [partial(factory, **options.kwargs)] * num_envs
        with call_of(env_id, "__init__()"):
            return film_envs(env_id, makes, options, seed, first_env_idx, group_of)

    describe = describer(make_group_of_singles)
    return Entry(describe, make_group_of_singles, make_rendered_group_of_singles, takes_wrappers=True)


def _group_of_either_kind(env_id: str, envs: list[Any], *args: Any, **kwargs: Any) -> Any:
    make = group_of_matches if calls.is_match(envs[0]) else group_of_envs
    return make(env_id, envs, *args, **kwargs)


def group_of_envs(
    env_id: str, envs: list[Any], options: EnvOptions, seed: int, first_env_idx: int, films: bool = False
) -> Any:
    """Make a group of environments of one agent, or of several in the manner of Gymnasium.

    films: makes a `RenderedGroup`, which does not ask for strict spaces.
    """
    envs = [as_gymnasium(env_id, env) for env in envs]
    if has_several_agents(env_id, envs[0]):
        return group_of_matches(env_id, [agents_of(env) for env in envs], options, seed, first_env_idx, films)
    frameskip = options.env_frameskip or 1
    if not films:
        return GymGroup(env_id, envs, seed, first_env_idx, frameskip, options.strict_spaces)
    cameras = [EnvCamera(env_id, env) for env in envs]
    return filmed(GymGroup(env_id, cameras, seed, first_env_idx, frameskip), cameras)


def group_of_matches(
    env_id: str, envs: list[Any], options: EnvOptions, seed: int, first_env_idx: int, films: bool = False
) -> Any:
    """Make a group of environments of several agents. films: see `group_of_envs`."""
    frameskip = options.env_frameskip or 1
    matches = [as_parallel(env_id, env, frameskip) for env in envs]
    if not films:
        return ParallelGroup(env_id, matches, seed, first_env_idx, frameskip, options.strict_spaces)
    cameras: list[Any] = [MatchCamera(env_id, match) for match in matches]  # each has all that its match has
    return filmed(ParallelGroup(env_id, cameras, seed, first_env_idx, frameskip), cameras)


def require_arguments(env_id: str, factory: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    """Raises UsageError for arguments that the factory does not take. What it raises itself is not caught here."""
    try:
        inspect.signature(factory).bind(**kwargs)
    except TypeError as error:
        raise UsageError(f"env {env_id!r} with env_kwargs {kwargs}: {error}") from None
    except ValueError:  # of what is not written in Python: it says itself what it does not take
        pass


def describer(make: MakeGroup) -> Describe:
    def describe_by_making(env_id: str, options: EnvOptions) -> EnvSpec:
        with handed_to(lambda about, sentence: None):  # the groups that do the work say it again
            group = make(env_id, 1, options, seed=0, first_env_idx=0)
            group.close()
        return group.spec

    return describe_by_making
