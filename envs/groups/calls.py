"""Calls of an environment with Gymnasium's or PettingZoo's API, whose code may be anybody's.

What it raises becomes an `EnvError` with its name. An answer that breaks the API is an `ApiError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import (
    ApiError,
    EnvError,
    UsageError,
    call_of,
    env_exceptions,
    failure,
    is_refusal_of_arguments,
    summary,
)
from sf.envs.remarks import remark


def make(env_id: str, factory: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    with call_of(env_id, "__init__()"):
        env = factory(**kwargs)
    return _no_class(env_id, env)


def _no_class(env_id: str, env: Any) -> Any:
    if isinstance(env, type):
        raise UsageError(f"{env_id}: it returns the class {env.__name__}: return an environment, {env.__name__}()")
    return env


@contextmanager
def made(
    env_id: str, makes: Iterable[Callable[[], Any]], wrap: Callable[[Any], Any] = lambda env: env
) -> Iterator[list[Any]]:
    """Environments, for a group that is made of them in the block. Where one fails, or the group, all are closed."""
    envs: list[Any] = []
    try:
        for make_one in makes:
            envs.append(_no_class(env_id, make_one()))
            envs[-1] = wrap(envs[-1])
        yield envs
    except BaseException:
        for env in envs:
            close(env_id, env)
        raise


def reset(env_id: str, env: Any, **kwargs: Any) -> Any:
    """Returns the observation. kwargs: of its `reset`."""
    try:
        answer = env.reset(**kwargs)
    except (UsageError, EnvError):
        raise
    except env_exceptions() as error:
        if is_refusal_of_arguments(error) and any(f"argument {name!r}" in str(error) for name in kwargs):
            raise ApiError(
                f"{env_id}: reset() refuses an argument ({error}): write `def reset(self, *, seed=None, options=None)` "
                "(Gymnasium's API)"
            ) from None
        raise failure(env_id, "reset()", error) from error
    is_pair = isinstance(answer, tuple) and len(answer) == 2
    if not is_pair or not isinstance(answer[1], Mapping | None):
        kind = f"a tuple whose second part is {_kind(answer[1])}" if is_pair else _kind(answer)
        raise ApiError(
            f"{env_id}: reset() returned {kind}: return the observation and a dict, `return obs, {{}}` "
            "(Gymnasium's API)"
        )
    return answer[0]


def step(env_id: str, env: Any, action: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Observation, reward, terminated, truncated, info."""
    try:
        answer = env.step(action)
    except (UsageError, EnvError):
        raise
    except env_exceptions() as error:
        raise EnvError(env_id, "step()", error) from error
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise ApiError(
            f"{env_id}: step() returned {_kind(answer)}: return five values, `return obs, reward, terminated, "
            "truncated, info` (Gymnasium's API; an older one had a single `done`)"
        )
    return answer


def decision(env_id: str, env: Any, action: Any, frameskip: int) -> tuple[Any, float, bool, bool, Any, int]:
    """Take one action for `frameskip` steps, or until the episode ends. Returns the last observation, the sum of the
    rewards, terminated, truncated, the last info, and the number of steps."""
    total = 0.0
    num_frames = 0
    is_over = False
    while num_frames < frameskip and not is_over:
        obs, its_reward, terminated, truncated, info = step(env_id, env, action)
        total += reward(env_id, its_reward)
        terminated = flag(env_id, "terminated", terminated)
        truncated = flag(env_id, "truncated", truncated)
        num_frames += 1
        is_over = terminated or truncated
    return obs, total, terminated, truncated, info, num_frames


def reward(env_id: str, value: Any) -> float:
    """Raises ApiError for what is not one real number."""
    if type(value) is float:
        return value
    # float() drops the imaginary part of a complex number, and reads text.
    if getattr(getattr(value, "dtype", None), "kind", None) != "c" and not isinstance(value, str | bytes):
        with suppress(TypeError, ValueError):
            return float(value.item() if getattr(value, "size", None) == 1 else value)
    what = f"{env_id}: step() returned the reward {short(value)}"
    if getattr(value, "size", 1) != 1 or isinstance(value, list | tuple):
        raise ApiError(
            f"{what}: return one number, for example the weighted sum that mo_gymnasium.wrappers.LinearReward makes"
        )
    raise ApiError(f"{what}: return a real number")


def flag(env_id: str, name: str, value: Any) -> bool:
    """Returns whether an episode has ended. name: what was returned, such as "terminated".

    Raises ApiError for what is not one truth value. A dict or a list is true where anything is in it.
    """
    if type(value) is bool:
        return value
    is_one = math.prod(getattr(value, "shape", (0,))) == 1  # of an array or a tensor
    if is_one or not isinstance(value, Collection):
        with suppress(TypeError, ValueError, RuntimeError):  # of arrays of other libraries, too
            return bool(value)
    raise ApiError(f"{env_id}: step() returned {short(value)} as {name}: return True or False")


def episode_stats(env_id: str, info: Any) -> dict[str, float]:
    """Returns the numbers under "episode_stats" in the `info` of an episode's last step.

    "episode_extra_stats" and "true_objective", as Sample Factory has them, count likewise.
    """
    if not isinstance(info, Mapping):
        raise ApiError(f"{env_id}: step() returned the info {short(info)}: return a dict, {{}} where there is none")
    objective = {"true_objective": info["true_objective"]} if "true_objective" in info else {}
    key = "episode_stats" if "episode_stats" in info else "episode_extra_stats"
    stats = info.get(key, {})
    try:
        return {str(name): float(value) for name, value in {**objective, **stats}.items()}
    except (AttributeError, TypeError, ValueError):
        raise ApiError(f"{env_id}: info[{key!r}] is {short(stats)}: make it a dict of names and numbers") from None


def space(env_id: str, env: Any, name: str, *of_whom: Any) -> gym.Space:
    """A space of the environment: its attribute `name`, or for the agent `of_whom` what its method `name` returns."""
    with call_of(env_id, name):
        try:
            found = getattr(env, name)
            if of_whom and not callable(found):
                raise UsageError(
                    f"{env_id}: its {name} is {short(found)}: make it a method {name}(agent) that returns the space of "
                    "one agent (PettingZoo's API)"
                )
            found = found(*of_whom) if of_whom else found
        except AttributeError as error:
            if error.name != name:
                raise
            how = (
                f"give it a method {name}(agent) that returns one of gymnasium.spaces"
                if of_whom
                else f"set self.{name} in __init__, or as an attribute of the class, to one of gymnasium.spaces"
            )
            raise UsageError(f"{env_id}: it has no {name}: {how}") from None
    if not isinstance(found, gym.Space):
        kind = f"of {type(found).__module__}" if type(found).__module__ != "builtins" else "no space"
        raise UsageError(f"{env_id}: its {name} is {short(found)}, {kind}: set it to one of gymnasium.spaces")
    return found


def state_space(env_id: str, env: Any) -> gym.spaces.Box | None:
    """Returns the space of what the method `state()` returns, or None where the environment declares none."""
    if not hasattr(env, "state_space"):
        return None
    found = space(env_id, env, "state_space")
    return found if isinstance(found, gym.spaces.Box) else None


def state(env_id: str, env: Any) -> np.ndarray:
    """Returns the state of an environment that has a `state_space`."""
    with call_of(env_id, "state()"):
        return np.asarray(env.state())


def is_env(env: Any) -> bool:
    """Returns whether something, or a class, can be an environment, of any kind."""
    return all(callable(getattr(env, method, None)) for method in ("reset", "step"))


def is_match(env: Any) -> bool:
    """Returns whether an environment is one of several agents, also where its `possible_agents` cannot be read yet."""
    return hasattr(env, "possible_agents") or hasattr(type(env), "possible_agents")


def possible_agents(env_id: str, env: Any) -> list[Any]:
    """Returns all agents that may ever play in a match. Raises UsageError where it does not list them."""
    try:
        found = env.possible_agents if is_match(env) else ()
    except env_exceptions() as error:
        raise UsageError(
            f"{env_id}: its `possible_agents` cannot be read before reset() ({summary(error)}): set it in __init__"
        ) from error
    _require_list(env_id, "possible_agents", found, UsageError)
    if not len(found):
        raise UsageError(
            f"{env_id}: it has no `possible_agents`: list every agent there that may ever play, since memory is "
            "allocated for all of them before the first match"
        )
    return list(found)


def agents(env_id: str, env: Any) -> Collection[Any]:
    """Returns those of a match that act next. Raises ApiError where it does not list them."""
    found = env.agents
    if type(found) is not list:
        _require_list(env_id, "agents", found, ApiError)
    return found


def _require_list(env_id: str, name: str, found: Any, kind: type[UsageError]) -> None:
    if isinstance(found, str) or not isinstance(found, Collection):
        raise kind(f"{env_id}: its `{name}` is {short(found)}: make it a list of agents, [] where there is none")


def close(env_id: str, env: Any) -> None:
    """Close an environment, or a group. If that fails it is only remarked, so that everything else is closed, too."""
    try:
        env.close()
    except env_exceptions() as error:
        remark(f"{env_id} close", f"{env_id} failed in close(): {summary(error)}: it is left as it is")


def _kind(answer: Any) -> str:
    if isinstance(answer, tuple):
        return f"a tuple of {len(answer)}"
    shape = getattr(answer, "shape", None)
    of_shape = "" if shape is None else f" of shape {tuple(shape)}"
    return "None" if answer is None else f"one object of type {type(answer).__name__}{of_shape}"


def short(value: Any) -> str:
    """Returns a value in at most 60 characters, for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
