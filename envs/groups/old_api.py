"""Environments with the API of the package gym as ones of Gymnasium.

Before gym 0.26, `reset` returned the observation alone and `step` four values, with one `done`. What is returned shows
which API it is. The package gym is not imported: its spaces are known by their attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from sf.envs.errors import UsageError
from sf.envs.groups.calls import is_env

_SPACES = ("observation_space", "action_space")


def as_gymnasium(env_id: str, env: Any) -> gym.Env:
    """Returns the environment, as an `OldApiEnv` unless it is Gymnasium's. Raises UsageError for no single one."""
    if isinstance(env, gym.Env):
        return env
    is_single = is_env(env) and not any(callable(getattr(env, name, None)) for name in _SPACES)
    if not is_single or isinstance(env, VectorEnv):
        raise UsageError(f"{env_id}: it is a {type(env).__qualname__}, and must be a gymnasium.Env")
    return OldApiEnv(env)


class OldApiEnv(gym.Env):
    """An environment that has no Gymnasium class, with Gymnasium's API."""

    def __init__(self, env: Any) -> None:
        self._env = env
        for name in _SPACES:
            if hasattr(env, name):  # the group says which is missing
                setattr(self, name, as_gymnasium_space(getattr(env, name)))
        self.metadata = getattr(env, "metadata", None) or {}
        self.render_mode = getattr(env, "render_mode", None)
        self._reset_takes_seed = _takes_seed(env.reset) and _takes_seed(getattr(env, "unwrapped", env).reset)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if self._reset_takes_seed:
            answer = self._env.reset(seed=seed)
        else:
            if seed is not None and _takes_one_value(getattr(self._env, "seed", None)):
                self._env.seed(seed)
            answer = self._env.reset()
        has_info = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
        return answer if has_info else (answer, {})

    def step(self, action: Any) -> Any:
        answer = self._env.step(action)
        if not isinstance(answer, tuple) or len(answer) != 4:
            return answer
        obs, reward, done, info = answer
        truncated = bool(done) and bool(info.get("TimeLimit.truncated", False))
        return obs, reward, bool(done) and not truncated, truncated, info

    def render(self) -> Any:
        return self._env.render()

    def close(self) -> None:
        if callable(getattr(self._env, "close", None)):
            self._env.close()


def as_gymnasium_space(space: Any) -> Any:
    """Returns the space of Gymnasium with the attributes of this one; what has none of them as it is."""
    if isinstance(space, gym.Space):
        return space
    if hasattr(space, "spaces"):
        if isinstance(space.spaces, Mapping):
            return gym.spaces.Dict({name: as_gymnasium_space(child) for name, child in space.spaces.items()})
        return gym.spaces.Tuple([as_gymnasium_space(child) for child in space.spaces])
    return _as_leaf(space)


def _as_leaf(space: Any) -> Any:
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = (np.broadcast_to(bound, space.shape).astype(space.dtype) for bound in (space.low, space.high))
        return gym.spaces.Box(low, high, tuple(space.shape), np.dtype(space.dtype).type)
    if hasattr(space, "nvec"):
        return gym.spaces.MultiDiscrete(space.nvec)
    if hasattr(space, "n") and type(space).__name__ == "MultiBinary":
        return gym.spaces.MultiBinary(space.n)
    return gym.spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0))) if hasattr(space, "n") else space


def _takes_one_value(function: Any) -> bool:
    try:
        inspect.signature(function).bind(0)
    except (TypeError, ValueError):  # there is no such function, it takes nothing, or its arguments are not known
        return False
    return True


def _takes_seed(reset: Any) -> bool:
    """Returns whether it has the argument, or hands on whatever it gets."""
    try:
        parameters = inspect.signature(reset).parameters
    except ValueError:  # of what is not written in Python
        return False
    return "seed" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
