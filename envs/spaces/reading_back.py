"""The way back from flat rows: an observation as the environment gave it, and an action as the network would give it.

For players that are written against the environment, such as a function, and not against the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.spaces.actions import Heads, centre_and_half, float_dtype, heads, leaf_actions, leaves
from sf.envs.spaces.seen_spaces import children

ReadObs = Callable[[Mapping[str, np.ndarray]], Any]
EncodeAction = Callable[[Any], tuple[np.ndarray, np.ndarray]]


def obs_reader(space: gym.Space) -> ReadObs:
    """Returns a function from the rows of one actor, {key: [...]}, to the observation that `ObsWriter` wrote there.

    space: `env_space` of that writer. Floats of 64 bits come back with the precision of 32.
    """
    return _reader(space, ())


def trajectory_reader(space: gym.Space) -> ReadObs:
    """Returns `obs_reader` for L rows at once, {key: [L, ...]}: each part of what it returns is an array [L, ...]."""
    return _reader(space, (), many=True)


def _reader(space: gym.Space, path: tuple[str, ...], many: bool = False) -> ReadObs:
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        parts = {name: _reader(child, (*path, name), many) for name, child in children(space)}
        if isinstance(space, gym.spaces.Tuple):
            return lambda rows: tuple(read(rows) for read in parts.values())
        return lambda rows: {name: read(rows) for name, read in parts.items()}
    key = "/".join(path) or "obs"
    if isinstance(space, gym.spaces.Discrete):
        first = int(space.start)
        return lambda rows: first + (rows[key].argmax(-1) if many else int(rows[key].argmax()))
    if isinstance(space, gym.spaces.MultiDiscrete) and len(space.shape) == 1:
        ends, starts, integer = np.cumsum(space.nvec)[:-1], space.start, space.dtype
        return lambda rows: (
            np.stack([part.argmax(-1) for part in np.split(rows[key], ends, -1)], -1).astype(integer) + starts
        )
    shape, dtype = (-1, *(space.shape or ())) if many else space.shape, space.dtype
    return lambda rows: rows[key].reshape(shape).astype(dtype)


def action_encoder(space: gym.Space) -> EncodeAction:
    """Returns a function from an action that `space` contains to its discrete [D] and continuous [C] numbers.

    It is the inverse of `sf.envs.spaces.actions.decoder`. The function raises UsageError for what is no such action.
    """
    space_leaves = leaves(space)

    def encode(action: Any) -> tuple[np.ndarray, np.ndarray]:
        discrete: list[np.ndarray] = []
        continuous: list[np.ndarray] = []
        try:
            for leaf, part in zip(space_leaves, leaf_actions(space, action), strict=True):
                leaf_heads = heads(leaf)
                if leaf_heads is None:
                    assert isinstance(leaf, gym.spaces.Box)
                    continuous.append(_numbers(leaf, part))
                else:
                    discrete.append(_choices(leaf, leaf_heads, part))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UsageError(f"the action {action!r} is not in {space}: return one that the space contains") from None
        return (
            np.concatenate([np.zeros(0, np.int32), *discrete]).astype(np.int32),
            np.concatenate([np.zeros(0, np.float32), *continuous]).astype(np.float32),
        )

    return encode


def _numbers(space: gym.spaces.Box, action: Any) -> np.ndarray:
    """Raises ValueError or TypeError for what is no action."""
    centre, half = centre_and_half(space)
    floats = np.asarray(action).astype(float_dtype(space)).reshape(space.shape)
    if not np.isfinite(floats).all():
        raise ValueError
    return ((floats - centre) / np.where(half > 0, half, 1)).ravel()


def _choices(space: gym.Space, heads_of_space: Heads, action: Any) -> np.ndarray:
    """Raises ValueError or TypeError for what is no action."""
    values = np.asarray(action)
    chosen = values.reshape(space.shape or ()).ravel() - heads_of_space.starts
    if values.dtype.kind not in "iub" or ((chosen < 0) | (chosen >= heads_of_space.sizes)).any():
        raise ValueError
    return chosen
