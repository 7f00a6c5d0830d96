"""The record of the toys, and how groups of them are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sf.envs.entries import describer, group_of_envs, group_of_matches, require_arguments
from sf.envs.family import Entry, Family
from sf.envs.group import EnvGroup, RenderedGroup
from sf.envs.options import EnvOptions
from sf.envs.rendering.filming import film_envs
from sf.envs.toys import matches, single
from sf.envs.wrappers.wrapping import wrapped

# Their observations say which environment of the run they come from.
_COUNTING = ("toy_counting", "toy_match_counting")


def _make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    envs = [wrapped(env_id, make_env(), options) for make_env in _makers(env_id, num_envs, options, first_env_idx)]
    group: EnvGroup = _group_of(env_id)(env_id, envs, options, seed, first_env_idx)
    group.spec = replace(group.spec, has_own_time_limit=False)  # theirs stand for limits around an environment
    return group


def _make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    makes = _makers(env_id, num_envs, options, first_env_idx)
    return film_envs(env_id, makes, options, seed, first_env_idx, _group_of(env_id))


def _group_of(env_id: str) -> Callable[..., Any]:
    return group_of_matches if env_id in matches.TOYS else group_of_envs


def _makers(env_id: str, num_envs: int, options: EnvOptions, first_env_idx: int) -> list[Callable[..., Any]]:
    kwargs = [dict(options.kwargs) for _ in range(num_envs)]
    if env_id in _COUNTING:
        for i, counting in enumerate(kwargs):
            counting.setdefault("env_idx", first_env_idx + i)
    make = _toys()[env_id]
    for each in kwargs:
        require_arguments(env_id, make, each)
    return [partial(make, **each) for each in kwargs]


def _toys() -> dict[str, Callable[..., Any]]:
    return {**single.TOYS, **matches.TOYS}


def _find(env_id: str) -> Entry | None:
    if env_id not in _toys():
        return None
    return Entry(describer(_make_group), _make_group, _make_rendered_group, takes_wrappers=True)


TOY = Family(
    name="toy",
    about="tiny, with a known optimum",
    pattern=r"toy_\w+",
    find=_find,
    env_ids=_toys,
)
