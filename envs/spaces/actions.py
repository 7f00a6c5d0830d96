"""Lays an action out in flat arrays: D discrete heads and C continuous numbers.

The policy writes `discrete` [N, D] and `continuous` [N, C]; an environment reads them back as its own kind of action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError

ACTION_MASK = "action_mask"
"""The key of an observation that says which choices are allowed: see `sf.model.distributions`."""

MOST_CHOICES = 1_000_000  # of all heads: a batch of 2,048 has eight gigabytes of logits then


@dataclass(frozen=True)
class ActionSpec:
    """The flat layout of an action space.

    discrete_sizes: number of choices of each independent categorical head, in the order of the space.
    num_continuous: how many real numbers follow. A policy samples them around [-1, 1]; `decoder` maps that range
        to `middle_range` of a Box.
    """

    discrete_sizes: tuple[int, ...]
    num_continuous: int

    @classmethod
    def of(cls, space: gym.Space) -> ActionSpec:
        """Raises UsageError for a space that is not Discrete, MultiDiscrete, Box, or a Tuple of them, has nothing to
        choose, or too much."""
        sizes: list[int] = []
        num_continuous = 0
        for leaf in _leaves(space):
            if isinstance(leaf, gym.spaces.Discrete):
                sizes.append(int(leaf.n))
            elif isinstance(leaf, gym.spaces.MultiDiscrete):
                sizes.extend(int(n) for n in leaf.nvec.flatten())
            else:
                num_continuous += int(np.prod(leaf.shape or ()))
        if not sizes and not num_continuous:
            raise UsageError(f"action space {space} has nothing to choose: give it a number, or a Discrete(1)")
        if sum(sizes) > MOST_CHOICES:
            raise UsageError(
                f"action space {space} has {sum(sizes):,} choices, and a network gives a number for each: at "
                f"most {MOST_CHOICES:,}; a wrapper of the environment can split one choice into several, as a "
                "MultiDiscrete, or make it a Box"
            )
        return cls(tuple(sizes), num_continuous)


def supported_action_space(env_id: str, space: gym.Space) -> gym.Space:
    """Returns the space itself, with a MultiBinary as the MultiDiscrete of the same actions.

    Raises UsageError, with the name of the environment, where `ActionSpec` does not take it.
    """
    try:
        space = without_multi_binary(space)
        ActionSpec.of(space)
    except UsageError as error:
        raise UsageError(f"{env_id}: {error}") from None
    return space


def without_multi_binary(space: gym.Space) -> gym.Space:
    """A MultiBinary of n is n choices of two: its actions are those of a MultiDiscrete."""
    if isinstance(space, gym.spaces.MultiBinary):
        return gym.spaces.MultiDiscrete(np.full(space.shape, 2), dtype=np.int8)
    if isinstance(space, gym.spaces.Tuple):
        return gym.spaces.Tuple([without_multi_binary(child) for child in space.spaces])
    return space


def decoder(space: gym.Space) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Returns a function (discrete [D], continuous [C]) -> an action that `space` contains."""
    if isinstance(space, gym.spaces.Tuple):
        parts = [(ActionSpec.of(leaf), decoder(leaf)) for leaf in space.spaces]

        def decode_tuple(discrete: np.ndarray, continuous: np.ndarray) -> tuple[Any, ...]:
            action, d, c = [], 0, 0
            for spec, decode in parts:
                d_end, c_end = d + len(spec.discrete_sizes), c + spec.num_continuous
                action.append(decode(discrete[d:d_end], continuous[c:c_end]))
                d, c = d_end, c_end
            return tuple(action)

        return decode_tuple
    if isinstance(space, gym.spaces.Discrete):
        start = int(space.start)
        return lambda discrete, continuous: start + int(discrete[0])
    if isinstance(space, gym.spaces.MultiDiscrete):
        shape, first = space.shape, space.start
        return lambda discrete, continuous: first + discrete.reshape(shape).astype(space.dtype)
    if isinstance(space, gym.spaces.Box):
        low, high, shape, dtype = space.low, space.high, space.shape, space.dtype
        centre, half = centre_and_half(space)

        def decode_box(discrete: np.ndarray, continuous: np.ndarray) -> np.ndarray:
            return np.asarray(np.clip(centre + half * continuous.reshape(shape), low, high), dtype)

        return decode_box
    raise _unsupported(space)


def centre_and_half(space: gym.spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """Returns where 0 of a policy is in a Box, and how far from it 1 is: both of its shape, float32 or its float64.

    Far from 0, float32 has a single number for all of a Box: from 1e9 to 1e9 + 10, for one.
    """
    bottom, top = middle_range(space)
    dtype = float_dtype(space)
    return ((top + bottom) / 2).astype(dtype), ((top - bottom) / 2).astype(dtype)


def float_dtype(space: gym.spaces.Box) -> np.dtype:
    """Returns the type in which its actions are computed."""
    return np.promote_types(space.dtype, np.float32)


def middle_range(space: gym.spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """Returns what -1 and 1 of a policy are in a Box, both of its shape.

    They are the bounds of an axis that has both. Where one is missing, they are -1 and 1 if 0 is inside: a new policy
    is centred on 0, so at least half of its actions are inside, however little they vary. If 0 is outside, all of its
    actions could be cut to the one bound, so they are low and low + 2, or high - 2 and high.
    """
    low, high = space.low, space.high
    # Some environments write the largest number where they mean infinity.
    with np.errstate(over="ignore"):
        bounded = high.astype(np.float64) - low < np.finfo(np.float32).max
    from_low, from_high = bounded | (low > 0), bounded | (high < 0)
    bottom = np.where(from_low, low, np.where(from_high, high - 2, -1.0))
    top = np.where(from_high, high, np.where(from_low, low + 2, 1.0))
    return bottom, top


def random_actions(
    rng: np.random.Generator, action: ActionSpec, count: int, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Uniform, discrete [count, D] int32 among what the mask [count, ...] allows, continuous [count, C] float32."""
    sizes = action.discrete_sizes
    if mask is None:
        high = sizes[0] if len(set(sizes)) == 1 else sizes  # one number is drawn below four times as fast
        discrete = rng.integers(0, high, (count, len(sizes)), dtype=np.int32)
    else:
        drawn = rng.random((count, sum(sizes))) + (mask.reshape(count, sum(sizes)) != 0)
        heads = np.split(drawn, np.cumsum(sizes)[:-1], axis=1)
        discrete = np.stack([head.argmax(axis=1) for head in heads], axis=1).astype(np.int32)
    return discrete, rng.uniform(-1, 1, (count, action.num_continuous)).astype(np.float32)


def _leaves(space: gym.Space) -> list[gym.Space]:
    leaves = list(space.spaces) if isinstance(space, gym.spaces.Tuple) else [space]
    for leaf in leaves:
        integer_box = isinstance(leaf, gym.spaces.Box) and not np.issubdtype(leaf.dtype, np.floating)
        known = isinstance(leaf, gym.spaces.Discrete | gym.spaces.MultiDiscrete | gym.spaces.Box)
        if not known or integer_box:
            raise _unsupported(leaf)
    return leaves


def _unsupported(space: gym.Space) -> UsageError:
    return UsageError(
        f"action space {space} is not supported: use Discrete, MultiDiscrete, MultiBinary, a Box of floats, or a Tuple "
        "of those (a wrapper of the environment can convert it)"
    )
