"""Lays an action out in flat arrays: D discrete heads and C continuous numbers.

The policy writes `discrete` [N, D] and `continuous` [N, C]; an environment reads them back as its own kind of action.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.spaces.partial_box import PartialBox

ACTION_MASK = "action_mask"
"""The key of an observation that says which choices are allowed: see `sf.model.distributions`."""

CONTINUOUS_MASK = "continuous_mask"
"""The key of an observation that says which continuous numbers an agent has, where agents differ in that: [C] int8."""

MASKS = (ACTION_MASK, CONTINUOUS_MASK)
"""The observations that no network sees."""

MOST_CHOICES = 1_000_000  # of all heads: a batch of 2,048 has eight gigabytes of logits then
MOST_CHOICES_OF_INTEGER = 256  # of a Box: all values of a byte


@dataclass(frozen=True)
class ActionSpec:
    """The flat layout of an action space.

    discrete_sizes: number of choices of each independent categorical head, in the order of the space.
    num_continuous: how many real numbers follow. A policy samples them around [-1, 1]; `decoder` maps that range
        to `middle_range` of a Box.
    is_partial: whether some agents have only a part of the real numbers, see `CONTINUOUS_MASK`.
    """

    discrete_sizes: tuple[int, ...]
    num_continuous: int
    is_partial: bool = False

    @classmethod
    def of(cls, space: gym.Space) -> ActionSpec:
        """Raises UsageError for a space with a leaf that is not Discrete, MultiDiscrete or Box (see `leaves`), that has
        nothing to choose, or too much."""
        sizes: list[int] = []
        num_continuous = 0
        is_partial = False
        for leaf in leaves(space):
            is_partial |= isinstance(leaf, PartialBox)
            leaf_heads = heads(leaf)
            if leaf_heads is None:
                num_continuous += int(np.prod(leaf.shape or ()))
            else:
                sizes.extend(leaf_heads.sizes.tolist())
        if not sizes and not num_continuous:
            raise UsageError(f"action space {space} has nothing to choose: give it a number, or a Discrete(1)")
        if sum(sizes) > MOST_CHOICES:
            raise UsageError(
                f"action space {space} has {sum(sizes):,} choices, and a network gives a number for each: at "
                f"most {MOST_CHOICES:,}; a wrapper of the environment can split one choice into several, as a "
                "MultiDiscrete, or make it a Box"
            )
        return cls(tuple(sizes), num_continuous, is_partial)


class Heads(NamedTuple):
    """The categorical heads of a leaf: how many choices each has, [D] int64, and its first one, [D] int64."""

    sizes: np.ndarray
    starts: np.ndarray


def leaves(space: gym.Space) -> list[gym.Space]:
    """Returns the parts of a space that have no parts, in the order of its Dicts and Tuples, which may be nested."""
    if isinstance(space, gym.spaces.Dict):
        return [leaf for child in space.spaces.values() for leaf in leaves(child)]
    if isinstance(space, gym.spaces.Tuple):
        return [leaf for child in space.spaces for leaf in leaves(child)]
    return [space]


def leaf_actions(space: gym.Space, action: Any) -> list[Any]:
    """Returns the parts of an action of `space` in the order of `leaves`.

    Raises KeyError, TypeError or ValueError for what is no such action.
    """
    if isinstance(space, gym.spaces.Dict):
        if action.keys() != space.spaces.keys():
            raise ValueError
        return [part for key, child in space.spaces.items() for part in leaf_actions(child, action[key])]
    if isinstance(space, gym.spaces.Tuple):
        children = zip(space.spaces, action, strict=True)
        return [part for child, child_action in children for part in leaf_actions(child, child_action)]
    return [action]


def heads(leaf: gym.Space) -> Heads | None:
    """Returns the heads of a leaf, or None if its actions are continuous numbers.

    A Box of integers has a head for each of its numbers where none has more than `MOST_CHOICES_OF_INTEGER` values; else
    its actions are continuous numbers that are rounded. Raises UsageError for a leaf of another kind.
    """
    if isinstance(leaf, gym.spaces.Discrete):
        return Heads(np.array([leaf.n], np.int64), np.array([leaf.start], np.int64))
    if isinstance(leaf, gym.spaces.MultiDiscrete):
        return Heads(leaf.nvec.ravel().astype(np.int64), leaf.start.ravel().astype(np.int64))
    if not isinstance(leaf, gym.spaces.Box):
        raise UsageError(
            f"action space {leaf} is not supported: use Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple "
            "of those (a wrapper of the environment can convert it)"
        )
    if np.issubdtype(leaf.dtype, np.floating):
        return None
    low, high = leaf.low.ravel().astype(np.float64), leaf.high.ravel().astype(np.float64)
    if low.size == 0 or (high - low >= MOST_CHOICES_OF_INTEGER).any():
        return None
    return Heads((high - low).astype(np.int64) + 1, low.astype(np.int64))


def require_action_mask(box: gym.Space, num_choices: int) -> None:
    """Raises UsageError for an action mask that has not a number for each choice, or none above 0."""
    assert isinstance(box, gym.spaces.Box)
    if math.prod(box.shape) != num_choices:
        raise UsageError(
            f"observation {ACTION_MASK!r} has {math.prod(box.shape)} numbers, but the action has {num_choices} "
            "choices: give one number for each choice, head after head, or rename the key if it is not a mask"
        )
    if (box.high <= 0).all():
        raise UsageError(
            f"observation {ACTION_MASK!r} is at most 0 by its space, which would forbid every choice: give 1 for "
            "what is allowed, and 0 for what is not"
        )


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
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict([(name, without_multi_binary(child)) for name, child in space.spaces.items()])
    return space


def decoder(space: gym.Space, num_envs: int | None = None) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Returns a function (discrete [D], continuous [C]) -> an action that `space` contains.

    num_envs: the function takes [num_envs, D] and [num_envs, C] instead, and returns the actions of so many
    environments, as `gymnasium.vector.VectorEnv.step` takes them.
    """
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        named = space.spaces.items() if isinstance(space, gym.spaces.Dict) else enumerate(space.spaces)
        parts = []
        d = c = 0
        for name, child in named:
            spec = ActionSpec.of(child)
            d_end, c_end = d + len(spec.discrete_sizes), c + spec.num_continuous
            parts.append((name, slice(d, d_end), slice(c, c_end), decoder(child, num_envs)))
            d, c = d_end, c_end

        def decode_parts(discrete: np.ndarray, continuous: np.ndarray) -> dict[Any, Any]:
            return {name: decode(discrete[..., d], continuous[..., c]) for name, d, c, decode in parts}

        if isinstance(space, gym.spaces.Dict):
            return decode_parts
        return lambda discrete, continuous: tuple(decode_parts(discrete, continuous).values())
    shape, dtype = space.shape or (), space.dtype
    shape = shape if num_envs is None else (num_envs, *shape)
    leaf_heads = heads(space)
    if leaf_heads is None:
        assert isinstance(space, gym.spaces.Box)
        return _box_decoder(space, shape)
    if isinstance(space, gym.spaces.Discrete) and num_envs is None:
        start = int(space.start)
        return lambda discrete, continuous: start + int(discrete[0])
    starts = leaf_heads.starts
    return lambda discrete, continuous: (starts + discrete).reshape(shape).astype(dtype)


def _box_decoder(space: gym.spaces.Box, shape: tuple[int, ...]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    low, high, dtype = space.low, space.high, space.dtype
    centre, half = centre_and_half(space)
    is_integer = not np.issubdtype(dtype, np.floating)

    def decode(discrete: np.ndarray, continuous: np.ndarray) -> np.ndarray:
        numbers = centre + half * continuous.reshape(shape)
        return np.asarray(np.clip(np.rint(numbers) if is_integer else numbers, low, high), dtype)

    return decode


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
