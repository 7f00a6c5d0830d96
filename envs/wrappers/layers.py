"""Finds the layers around an environment (wrappers, and the classes that adapt it), and the time limits among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MOST = 50
_AROUND = "TimeLimit"  # Gymnasium's wrapper, and gym's


def layers(env: Any) -> tuple[str, ...]:
    """Returns the names of the classes, outermost first, that of the environment itself last."""
    return tuple(type(each).__name__ for each in objects(env))


def objects(env: Any) -> Iterator[Any]:
    """Yields the environment with all that is around it, outermost first.

    A layer keeps what it is around as `env` or `_env`.
    """
    num_found = 0
    while env is not None and num_found < _MOST:
        yield env
        num_found += 1
        inside = [getattr(env, "__dict__", {}).get(name) for name in ("env", "_env")]
        env = next((each for each in inside if hasattr(each, "reset") and hasattr(each, "step")), None)


def time_limit(env: Any, frameskip: int = 1) -> int | None:
    """Decisions of an episode at most: the least of the limits around `env` that say so."""
    specs = (getattr(each, "spec", None) for each in objects(env))
    found = (getattr(spec, "max_episode_steps", None) for spec in specs)
    limits = [limit for limit in found if isinstance(limit, int) and limit > 0]
    return -(-min(limits) // frameskip) if limits else None


def has_own_time_limit(env: Any) -> bool:
    """Returns whether a truncation of `env` comes from its own code.

    A limit lies around it where it is registered with `max_episode_steps`, or has a wrapper TimeLimit; that of a vector
    of single environments lies where theirs does.
    """
    single = getattr(getattr(env, "unwrapped", env), "envs", None)
    if isinstance(single, list | tuple) and single:
        return has_own_time_limit(single[0])
    return time_limit(env) is None and _AROUND not in layers(env)
