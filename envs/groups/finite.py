"""Refuses NaN and infinite numbers in observations and rewards: no network can learn from them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sf.envs import EnvSpec, Episode, ObsRows, UsageError

_LARGEST = np.finfo(np.float32).max


def float_keys(spec: EnvSpec) -> list[str]:
    """Returns the keys of observations that could have NaN or infinite numbers."""
    return [key for key, space in spec.obs_space.items() if np.issubdtype(space.dtype, np.floating)]


def require_finite_obs(env_id: str, obs: ObsRows, keys: Iterable[str]) -> None:
    """Raises UsageError for NaN, infinite numbers, and those that float32 cannot hold. keys: `float_keys`."""
    for key in keys:
        rows = obs[key]
        # One copy of all rows: a call for each of them takes four times as long where they are short.
        if not _are_finite(np.concatenate(rows, axis=None)):
            actors = [n for n, row in enumerate(rows) if not _are_finite(row)]
            raise UsageError(
                f"{env_id}: observation {key!r} of actors {actors} of a group has NaN or infinite numbers: "
                "the environment must return finite ones, which float32 can hold"
            )


def _are_finite(numbers: np.ndarray) -> bool:
    return bool((np.abs(numbers) <= _LARGEST).all())  # a NaN compares as false


def require_finite_rewards(env_id: str, reward: np.ndarray, episodes: Iterable[Episode]) -> None:
    """Raises UsageError for NaN or infinite rewards [N], or returns."""
    if not np.isfinite(reward).all():
        actors = np.flatnonzero(~np.isfinite(reward)).tolist()
        raise UsageError(
            f"{env_id}: the reward of actors {actors} of a group is {reward[actors[0]]}: the environment "
            "must return finite ones, which float32 can hold"
        )
    for episode in episodes:  # whose rewards need not all have been for the learner
        if not math.isfinite(episode.episode_return):
            raise UsageError(
                f"{env_id}: an episode of actor {episode.actor_idx} of a group has the return "
                f"{episode.episode_return}: the environment must return finite rewards"
            )
