"""Entries of environments that a factory makes: single ones, matches, and vector environments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gymnasium.vector import VectorEnv

from sf.envs.custom.named_objects import innermost
from sf.envs.errors import UsageError
from sf.envs.family import Describe, Entry, MakeGroup
from sf.envs.group import EnvGroup, EnvSpec, RenderedGroup
from sf.envs.groups import calls
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.old_api import as_gymnasium
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.teams import is_team, team_of
from sf.envs.groups.turns import as_parallel
from sf.envs.groups.vector import VectorGroup, require_num_envs, require_single_frames
from sf.envs.options import EnvOptions
from sf.envs.remarks import handed_to
from sf.envs.rendering.filming import film_envs, film_matches, film_vector
from sf.envs.wrappers.wrapping import wrapped

AN_ENV = "an environment (it has no reset and step)"  # for messages: what `is_env` asks for


def is_env(kind: type) -> bool:
    """Returns whether a class can be that of an environment, of any kind."""
    return all(callable(getattr(kind, method, None)) for method in ("reset", "step"))


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
    return _entry_of_singles(group_of_envs, film_envs, factory)


def entry_of_matches(factory: Callable[..., Any]) -> Entry:
    """Returns the entry of environments of several agents that `factory(**options.kwargs)` makes one by one."""
    return _entry_of_singles(_group_of_matches, film_matches, factory)


def entry_of_either(factory: Callable[..., Any]) -> Entry:
    """Returns the entry of a factory of single environments or of matches: the first that it makes shows which."""
    return _entry_of_singles(_group_of_either_kind, _film_of_either_kind, factory)


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


def _entry_of_singles(
    group: Callable[..., EnvGroup], film: Callable[..., RenderedGroup], factory: Callable[..., Any]
) -> Entry:
    """group: makes a group of environments. film: makes one that can be looked at, from what makes environments."""

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
            return group(env_id, envs, options, seed, first_env_idx)

    def make_rendered_group_of_singles(
        env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
    ) -> RenderedGroup:
        require_arguments(env_id, factory, options.kwargs)
        return film(env_id, [partial(factory, **options.kwargs)] * num_envs, options, seed, first_env_idx)

    describe = describer(make_group_of_singles)
    return Entry(describe, make_group_of_singles, make_rendered_group_of_singles, takes_wrappers=True)


def _group_of_either_kind(env_id: str, envs: list[Any], options: EnvOptions, seed: int, first_env_idx: int) -> EnvGroup:
    make = _group_of_matches if _is_match(envs[0]) else group_of_envs
    return make(env_id, envs, options, seed, first_env_idx)


def group_of_envs(env_id: str, envs: list[Any], options: EnvOptions, seed: int, first_env_idx: int) -> EnvGroup:
    """Make a group of environments of one agent, or of several in the manner of Gymnasium."""
    envs = [as_gymnasium(env_id, env) for env in envs]
    if is_team(env_id, envs[0]):
        return _group_of_matches(env_id, [team_of(env) for env in envs], options, seed, first_env_idx)
    return GymGroup(env_id, envs, seed, first_env_idx, options.env_frameskip or 1, options.strict_spaces)


def _group_of_matches(env_id: str, envs: list[Any], options: EnvOptions, seed: int, first_env_idx: int) -> EnvGroup:
    frameskip = options.env_frameskip or 1
    matches = [as_parallel(env_id, env, frameskip, options.share_reward) for env in envs]
    return ParallelGroup(env_id, matches, seed, first_env_idx, frameskip, options.strict_spaces)


def _film_of_either_kind(
    env_id: str, make_envs: Sequence[Callable[..., Any]], options: EnvOptions, seed: int, first_env_idx: int
) -> RenderedGroup:
    probe = calls.make(env_id, make_envs[0], {})
    film: Callable[..., RenderedGroup] = film_matches if _is_match(probe) else film_envs
    calls.close(env_id, probe)
    return film(env_id, make_envs, options, seed, first_env_idx)


def _is_match(env: Any) -> bool:
    return hasattr(env, "possible_agents") or hasattr(type(env), "possible_agents")  # also one that raises


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
