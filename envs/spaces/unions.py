"""The spaces of agents of several kinds as one: what a policy that plays them sees and does, and what is stored.

Observations are joined by their keys, and actions by their position: head for head, number for number. What a kind
lacks is zeros in an observation, and masked in an action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.spaces.actions import Heads, heads, leaves
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.partial_box import PartialBox
from sf.envs.spaces.planes import Planes

Boxes = Mapping[str, gym.spaces.Box]


def union_of_observations(
    env_id: str, of_kinds: Sequence[Boxes], agents: Sequence[Any], noun: str = "agent"
) -> dict[str, gym.spaces.Box]:
    """Returns the Box of each key that a kind has. A vector is as long as the longest; its bounds hold for all kinds.

    of_kinds: the stored observations of each kind. agents: one of each kind, for sentences, which call it `noun`.
    Raises UsageError for arrays of several axes that differ between kinds.
    """
    keys = dict.fromkeys(key for boxes in of_kinds for key in boxes)
    return {key: _union_box(env_id, key, [boxes.get(key) for boxes in of_kinds], agents, noun) for key in keys}


def _union_box(
    env_id: str, key: str, boxes: Sequence[gym.spaces.Box | None], agents: Sequence[Any], noun: str
) -> gym.spaces.Box:
    """boxes: None of a kind that lacks the observation."""
    (first, of_whom), *others = ((box, agent) for box, agent in zip(boxes, agents, strict=True) if box is not None)
    for box, agent in others:
        if not _can_be_one(first, box):
            raise UsageError(
                f"{env_id}: observation {key!r} of {noun} {of_whom!r} is {first.dtype} of shape {first.shape}, and "
                f"that of {noun} {agent!r} {box.dtype} of shape {box.shape}: give both the same shape and type with a "
                "wrapper such as supersuit:resize_v1"
            )
    if isinstance(first, Planes | Identity) or all(box == first for box in boxes):
        return first
    shape = max(box.shape for box in boxes if box is not None)
    dtype: Any = np.result_type(*(box.dtype for box in boxes if box is not None))
    bounds = [_bounds(box, shape, dtype) for box in boxes]
    low, high = np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)
    return gym.spaces.Box(low, high, shape, dtype)


def _can_be_one(first: gym.spaces.Box, other: gym.spaces.Box) -> bool:
    if isinstance(first, Planes | Identity) or isinstance(other, Planes | Identity):
        return first == other
    if len(first.shape) == len(other.shape) == 1:
        return True
    return first.shape == other.shape and first.dtype == other.dtype


def _bounds(box: gym.spaces.Box | None, shape: tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bounds of an observation with zeros where it is shorter, or not there."""
    low, high = np.zeros(shape, dtype), np.zeros(shape, dtype)
    if box is not None:
        own = tuple(slice(length) for length in box.shape)
        low[own], high[own] = box.low, box.high
    return low, high


class Actions(NamedTuple):
    """The flat actions of a kind.

    is_discrete: whether all of its heads are of a Discrete. heads: see `sf.envs.spaces.actions`. low, high: of the
    continuous numbers, [C] float32; NaN for those that are rounded to integers.
    """

    is_discrete: bool
    heads: Heads
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, space: gym.Space) -> Actions:
        sizes, starts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        low, high = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
        is_discrete = True
        for leaf in leaves(space):
            leaf_heads = heads(leaf)
            if leaf_heads is not None:
                is_discrete &= isinstance(leaf, gym.spaces.Discrete)
                sizes.append(leaf_heads.sizes)
                starts.append(leaf_heads.starts)
                continue
            assert isinstance(leaf, gym.spaces.Box)
            is_float = np.issubdtype(leaf.dtype, np.floating)
            for bounds, bound in ((low, leaf.low), (high, leaf.high)):
                bounds.append(np.where(is_float, bound, np.nan).ravel().astype(np.float32))
        of_heads = Heads(np.concatenate(sizes), np.concatenate(starts))
        return cls(is_discrete, of_heads, np.concatenate(low), np.concatenate(high))


def require_choices_or_numbers(
    env_id: str, spaces: Sequence[gym.Space], agents: Sequence[Any], noun: str = "agent"
) -> None:
    """Raises UsageError if one kind has only choices and another only numbers.

    spaces: of the actions of each kind that one policy plays. agents: one of each kind, which sentences call `noun`.
    """
    kinds = [Actions.of(space) for space in spaces]
    for kind, space, agent in zip(kinds, spaces, agents, strict=True):
        for other, others, another in zip(kinds, spaces, agents, strict=True):
            if not len(kind.low) and not len(other.heads.sizes):
                raise UsageError(
                    f"{env_id}: {noun} {agent!r} has choices ({space}), and {noun} {another!r} continuous numbers "
                    f"({others}), and one policy plays both: make both choices or both numbers, for example with "
                    "gymnasium.wrappers.DiscretizeAction's bins in the environment"
                )


def union_of_actions(spaces: Sequence[gym.Space]) -> gym.Space:
    """Returns the space itself if all kinds have the same, else one with the most choices of each head and the most
    continuous numbers: a Discrete, MultiDiscrete or Box, or a Tuple of choices and numbers.

    A choice counts from where all kinds count from, or else from 0. A continuous number has the bounds that it has for
    all kinds, or else -1 and 1, which are the middle range of the Box of each (`sf.envs.spaces.actions.middle_range`).
    """
    if all(space == spaces[0] for space in spaces):
        return spaces[0]
    kinds = [Actions.of(space) for space in spaces]
    parts: list[gym.Space] = []
    num_heads = max(len(kind.heads.sizes) for kind in kinds)
    if num_heads:
        sizes = [max(_at(kind.heads.sizes, h) or 0 for kind in kinds) for h in range(num_heads)]
        starts = [_common([_at(kind.heads.starts, h) for kind in kinds], 0) for h in range(num_heads)]
        is_discrete = num_heads == 1 and all(kind.is_discrete for kind in kinds)
        parts.append(
            gym.spaces.Discrete(int(sizes[0]), start=int(starts[0]))
            if is_discrete
            else gym.spaces.MultiDiscrete(sizes, start=starts)
        )
    numbers = union_of_numbers(kinds)
    if numbers is not None:
        parts.append(numbers)
    return parts[0] if len(parts) == 1 else gym.spaces.Tuple(parts)


def union_of_numbers(kinds: Sequence[Actions]) -> gym.spaces.Box | None:
    """Returns the Box of the most continuous numbers that a kind has, see `union_of_actions`; None if none has any."""
    num_numbers = max(len(kind.low) for kind in kinds)
    if not num_numbers:
        return None
    low, high = np.full(num_numbers, -1, np.float32), np.full(num_numbers, 1, np.float32)
    for c in range(num_numbers):
        bounds = {(kind.low[c], kind.high[c]) for kind in kinds if len(kind.low) > c}
        if len(bounds) == 1 and not np.isnan([*bounds]).any():
            (low[c], high[c]) = bounds.pop()
    is_partial = any(len(kind.low) < num_numbers for kind in kinds)
    return (PartialBox if is_partial else gym.spaces.Box)(low, high, dtype=np.float32)


def _at(numbers: np.ndarray, idx: int) -> int | None:
    return int(numbers[idx]) if idx < len(numbers) else None


def _common(of_kinds: Sequence[int | None], otherwise: int) -> int:
    """Returns the number of those kinds that have one, if it is the same for all of them."""
    found = {number for number in of_kinds if number is not None}
    return found.pop() if len(found) == 1 else otherwise
