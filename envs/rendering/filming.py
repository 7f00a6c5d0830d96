"""Groups of films: from what makes environments to a `RenderedGroup` of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from sf.envs.group import EnvGroup, RenderedGroup
from sf.envs.groups import calls
from sf.envs.groups.vector import VectorGroup, require_num_envs
from sf.envs.options import EnvOptions
from sf.envs.rendering.cameras import RENDER_MODE, VectorCamera
from sf.envs.rendering.film import FilmedGroup
from sf.envs.wrappers.layers import objects
from sf.envs.wrappers.wrapping import wrapped

PICTURES_PER_S = 10.0  # of environments that do not say how fast they are
_REFUSALS = (AssertionError, TypeError, ValueError, gym.error.Error)  # of a mode that an environment does not have
_APIS = ("gymnasium", "pettingzoo")  # the packages whose classes have a render() that draws nothing


def film_envs(
    env_id: str,
    make_envs: Sequence[Callable[..., Any]],
    options: EnvOptions,
    seed: int,
    first_env_idx: int,
    group_of: Callable[..., RenderedGroup],
) -> RenderedGroup:
    """make_envs: each makes an environment; called with a keyword `render_mode`, and without it where that fails, or
        where the environment does not draw. Its observations are filmed then.
    group_of: makes the group, such as `sf.envs.entries.group_of_envs`.

    The wrappers of `options` are put around them here.
    """
    makes = [partial(_make_drawing, env_id, make) for make in make_envs]
    with calls.made(env_id, makes, lambda env: wrapped(env_id, env, options)) as envs:
        return group_of(env_id, envs, options, seed, first_env_idx, films=True)


def film_vector(
    env_id: str,
    make_env: Callable[..., VectorEnv],
    num_envs: int,
    options: EnvOptions,
    seed: int,
    first_env_idx: int,
) -> RenderedGroup:
    """As `film_envs`, of a vector environment. num_envs: what `make_env` asks it for."""
    env = _make_drawing(env_id, make_env)
    require_num_envs(env_id, env, num_envs)
    camera = VectorCamera(env_id, wrapped(env_id, env, options))
    return filmed(VectorGroup(env_id, camera, seed, first_env_idx), [camera])


def filmed(group: EnvGroup, cameras: Sequence[Any]) -> RenderedGroup:
    """Returns a group with its cameras, at the pace that the first of them says."""
    return FilmedGroup(group, cameras, _pictures_per_s(cameras[0]))


def _make_drawing(env_id: str, make: Callable[..., Any]) -> Any:
    try:
        env = make(render_mode=RENDER_MODE)
    except _REFUSALS:  # no such mode; or it cannot be made, which is raised again
        return make()
    if _draws(env):
        return env
    calls.close(env_id, env)
    return make()


def _draws(env: Any) -> bool:
    """Returns whether its metadata name the mode or, if they name none, whether it has a render() of its own."""
    modes = (getattr(env, "metadata", None) or {}).get("render_modes")
    if modes:
        return RENDER_MODE in modes
    found = [*objects(env)]
    return any(map(_has_own_render, [*found, *getattr(found[-1], "envs", ())]))  # `envs`: of a SyncVectorEnv


def _has_own_render(env: Any) -> bool:
    render = getattr(type(env), "render", None)
    return render is not None and render.__module__.partition(".")[0] not in _APIS


def _pictures_per_s(env: Any) -> float:
    """As its metadata say; what is no positive number there says nothing."""
    said = (getattr(env, "metadata", None) or {}).get("render_fps")
    try:
        rate = float(said or PICTURES_PER_S)
    except (TypeError, ValueError):
        return float(PICTURES_PER_S)
    return rate if 0.0 < rate < math.inf else float(PICTURES_PER_S)
