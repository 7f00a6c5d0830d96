"""Environments of EnvPool (https://github.com/sail-sg/envpool), by their names there: `envpool:Pong-v5`.

EnvPool 1.2 declares the autoreset mode NEXT_STEP and keeps to it: the step that ends an episode returns its final
observation, and the next one ignores its action and resets. It marks an episode as truncated wherever it reaches
`max_episode_steps`, so one that is terminated in that very step counts as truncated, too.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

from sf.envs.entries import describer
from sf.envs.errors import UsageError
from sf.envs.family import Entry, Family
from sf.envs.group import EnvGroup, RenderedGroup
from sf.envs.groups.vector import VectorGroup
from sf.envs.options import EnvOptions
from sf.envs.rendering.filming import film_vector
from sf.envs.seeding import env_seed
from sf.envs.wrappers.wrapping import wrapped

_PREFIX = "envpool:"
_INSTALL = "pip install 'envpool>=1.2,<2' (Python 3.11 or later)"


def _make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """Raises UsageError where EnvPool is not installed, or has no such environment or argument of `make`."""
    env = _pool(env_id, num_envs, options, seed, first_env_idx, core)
    vector_env, frameskip = wrapped(env_id, env, options), env.frameskip
    group = VectorGroup(env_id, vector_env, seed, first_env_idx, frameskip, options.strict_spaces)
    group.spec = replace(group.spec, has_own_time_limit=False)  # its specs are of another kind
    return group


def _make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Its pictures are of what the policy sees. Raises UsageError as `_make_group` does."""
    make = partial(_pool, env_id, num_envs, options, seed, first_env_idx, None)
    return film_vector(env_id, make, num_envs, options, seed, first_env_idx)


def _pool(env_id: str, num_envs: int, options: EnvOptions, seed: int, first_env_idx: int, core: int | None) -> _Pool:
    try:
        envpool = importlib.import_module("envpool")
    except ImportError as error:
        raise UsageError(f"env {env_id!r}: {error}: {_INSTALL}") from error
    name = env_id.removeprefix(_PREFIX)
    if name not in envpool.list_all_envs():
        raise UsageError(f"env {env_id!r}: EnvPool has no {name!r}; envpool.list_all_envs() has its names")
    kwargs: dict[str, Any] = {
        "num_threads": 1,  # the processes of the trainer are its parallelism
        "thread_affinity_offset": -1 if core is None else core,
        **({} if options.env_frameskip is None else {"frame_skip": options.env_frameskip}),
        **options.kwargs,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of Gymnasium, about the precision of EnvPool's spaces
        try:
            pool = envpool.make_gymnasium(name, num_envs=num_envs, seed=env_seed(seed, first_env_idx), **kwargs)
        except (TypeError, ValueError) as error:
            raise UsageError(f"env {env_id!r} with {kwargs}: {error}") from error
        env = _Pool(pool, pool.config.get("frame_skip", 1))
    if pool.config["max_num_players"] > 1:
        raise UsageError(f"env {env_id!r}: it has several players, which is not supported through EnvPool")
    return env


class _Pool(VectorWrapper):
    """Has the bounds that EnvPool means, and takes no seed at `reset`: the pool was made with one."""

    def __init__(self, pool: VectorEnv, frameskip: int) -> None:
        super().__init__(pool)
        self.single_observation_space = _unbounded_where_meant(pool.single_observation_space)
        self.single_action_space = _unbounded_where_meant(pool.single_action_space)
        self.frameskip = frameskip

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(options=options)


def _unbounded_where_meant(space: gym.Space) -> gym.Space:
    """EnvPool writes the smallest positive and the largest number of a float where it means infinities."""
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({name: _unbounded_where_meant(child) for name, child in space.items()})
    if not isinstance(space, gym.spaces.Box) or space.dtype.kind != "f":
        return space
    limits = np.finfo(space.dtype)
    low = np.where(space.low == limits.tiny, -np.inf, space.low)
    high = np.where(space.high == limits.max, np.inf, space.high)
    return gym.spaces.Box(low.astype(space.dtype), high.astype(space.dtype), space.shape, space.dtype)


ENVPOOL = Family(
    name="envpool",
    about="environments of EnvPool",
    pattern=f"{_PREFIX}.*",
    find=lambda env_id: Entry(describer(_make_group), _make_group, _make_rendered_group, takes_wrappers=True),
    package="envpool",
    install=_INSTALL,
)
