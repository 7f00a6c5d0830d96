"""Whose a time limit is: the environment's own, or one that was laid around it."""

from __future__ import annotations

from typing import Any

from sf.envs.wrappers.layers import layers, objects

_AROUND = "TimeLimit"  # Gymnasium's wrapper, and gym's


def time_limit(env: Any, frameskip: int = 1) -> int | None:
    """Decisions of an episode at most: the least of the limits around `env` that say so."""
    specs = (getattr(each, "spec", None) for each in objects(env))
    found = (getattr(spec, "max_episode_steps", None) for spec in specs)
    limits = [limit for limit in found if isinstance(limit, int) and limit > 0]
    return -(-min(limits) // frameskip) if limits else None


def has_own_time_limit(env: Any) -> bool:
    """Whether a truncation of `env` comes from its own code.

    A limit lies around it where it is registered with `max_episode_steps`, or has a wrapper TimeLimit; that of a vector
    of single environments lies where theirs does.
    """
    single = getattr(getattr(env, "unwrapped", env), "envs", None)
    if isinstance(single, list | tuple) and single:
        return has_own_time_limit(single[0])
    return time_limit(env) is None and _AROUND not in layers(env)
