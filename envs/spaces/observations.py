"""Any supported observation space as a flat Dict of Boxes, and a writer of observations into rows of memory.

An image is a uint8 Box of rank 3, with its channels last (H, W, C) or first (C, H, W); it stays as the
environment gives it. Integers and float64 keep their digits; other floats are stored as float32.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.group import ObsRows
from sf.envs.remarks import remark
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.planes import Planes
from sf.envs.spaces.seen_spaces import children, seen_space

LOOK_EVERY = 127  # a prime: where a group writes for many environments in turn, each of them has its turn
MOST_CHOICES = 10**7  # of an observation that is one-hot: each is a number of each row
_SIDE_OF_PICTURE = 28
_NUM_CHANNELS = {1, 3, 4}

_Store = Callable[[Any, np.ndarray], None]


class ObsWriter:
    """Writes the observations of one environment, checked against the space that it declares.

    A bare Box is {"obs": Box}, a nested Dict has its keys joined by "/", and a Tuple is a Dict with the keys "0",
    "1" and so on. A Discrete is one-hot, a MultiDiscrete the one-hot of each of its numbers in a row, or a Box of
    integers where it has several axes, a MultiBinary is a Box of int8, and a Box without axes gets one. `space` is
    what the rows look like. `env_space` is the space of what the environment returns, without the parts that no
    network can read, such as text.
    """

    def __init__(self, env_id: str, space: gym.Space, strict: bool = False, look_every: int = 0) -> None:
        """strict: each `write` raises for what is outside of its space, which takes time.
        look_every: one `write` in this many looks whether something is outside of its space; 0: none does.

        Raises UsageError for a space of which nothing is a Box, Discrete, MultiDiscrete or MultiBinary, and for one
        with more than `MOST_CHOICES`.
        """
        self._env_id = env_id
        self._strict = strict
        self._look_every = 1 if strict else look_every
        self._until_look = self._look_every
        self._next_of_batch = 0
        self._bounded: dict[str, gym.spaces.Box] = {}  # of what nothing is said yet
        self._leaves: list[tuple[str, tuple[str, ...], _Store]] = []
        boxes: dict[str, gym.Space] = {}
        self.env_space = seen_space(env_id, space)
        for path, leaf in _leaves(self.env_space, ()):
            key = "/".join(path) or "obs"
            if key.endswith(f"/{ACTION_MASK}"):
                remark(
                    f"{env_id} nested mask {key}",
                    f"{env_id}: observation {key!r} forbids nothing, as it is nested: move {ACTION_MASK!r} to the top "
                    "of the Dict if it says which choices are allowed",
                )
            if key in boxes:
                raise UsageError(f"{env_id}: two observations are named {key!r}: rename a key of the Dict")
            if isinstance(leaf, gym.spaces.MultiDiscrete) and len(leaf.shape) > 1:
                integer: Any = leaf.dtype
                leaf = gym.spaces.Box(leaf.start, leaf.start + leaf.nvec - 1, dtype=integer)  # noqa: PLW2901
            _require_few_choices(env_id, key, leaf)
            if isinstance(leaf, gym.spaces.Discrete):
                boxes[key] = gym.spaces.Box(0.0, 1.0, (int(leaf.n),), np.float32)
                store = _one_hot_store(env_id, key, leaf)
            elif isinstance(leaf, gym.spaces.MultiDiscrete):
                boxes[key] = gym.spaces.Box(0.0, 1.0, (int(leaf.nvec.sum()),), np.float32)
                store = _one_hots_store(env_id, key, leaf)
            else:
                boxes[key] = box = _stored_box(leaf)
                _remark_on_pictures(env_id, key, box)
                store = _box_store(env_id, key, leaf)
                if _can_be_outside(box):
                    self._bounded[key] = box
            self._leaves.append((key, path, store))
        if not any(np.prod(box.shape or ()) for box in boxes.values()):
            raise UsageError(
                f"{env_id}: its observation space, {space}, is empty: give the policy at least one number to see"
            )
        self.space = gym.spaces.Dict(boxes)

    def write(self, obs: Any, rows: ObsRows, actor_idx: int) -> None:
        """Raises UsageError for an observation whose shape or kind of number is not that of its space."""
        for key, path, store in self._leaves:
            store(self._at(obs, path), rows[key][actor_idx])
        self._until_look -= 1
        if self._until_look == 0:
            self._until_look = self._look_every
            self.check_bounds(rows, actor_idx)

    def write_batch(self, obs: Any, rows: ObsRows) -> None:
        """`write` for all actors, from observations that are batched in the way of `gymnasium.vector`."""
        for key, path, store in self._leaves:
            for value, row in zip(self._at(obs, path), rows[key], strict=True):
                store(value, row)
        self._until_look -= 1
        if self._until_look == 0:
            self._until_look = self._look_every
            num_actors = len(next(iter(rows.values())))
            for n in range(num_actors) if self._strict else [self._next_of_batch % num_actors]:
                self.check_bounds(rows, n)
            self._next_of_batch += 1

    def check_bounds(self, rows: ObsRows, actor_idx: int) -> None:
        """Say where a written observation lies outside of its space; raises UsageError if `strict`. Slow.

        NaN is not looked for here: see `sf.envs.guard`.
        """
        for key, box in list(self._bounded.items()):
            where = _outside(rows[key][actor_idx], box)
            if where is None:
                continue
            sentence = f"{self._env_id}: observation {key!r}{where}"
            if self._strict:
                raise UsageError(f"{sentence}: widen the bounds of the space, or clip the observation")
            del self._bounded[key]  # it is said once
            about = f"{self._env_id} bounds of {key}"
            remark(about, f"{sentence}; training goes on with it (--strict_spaces true makes it an error)")

    def _at(self, obs: Any, path: tuple[str, ...]) -> Any:
        try:
            for name in path:
                obs = obs[int(name)] if isinstance(obs, tuple | list) else obs[name]
        except (KeyError, IndexError, TypeError, ValueError):
            raise UsageError(
                f"{self._env_id}: observation {'/'.join(path)!r} is in the observation space, but not in "
                "what the environment returned: return every key of the space at every step"
            ) from None
        return obs


def _require_few_choices(env_id: str, key: str, space: gym.Space) -> None:
    num_choices = 0
    if isinstance(space, gym.spaces.Discrete):
        num_choices = int(space.n)
    elif isinstance(space, gym.spaces.MultiDiscrete):
        num_choices = sum(space.nvec.tolist())
    if num_choices > MOST_CHOICES:
        raise UsageError(
            f"{env_id}: observation {key!r} is one of {num_choices:,} choices, and would be a row of as many numbers: "
            "observe its digits as a MultiDiscrete, or its value as a Box"
        )


def _remark_on_pictures(env_id: str, key: str, box: gym.spaces.Box) -> None:
    """On what looks like pictures, and is a vector for the network: pictures are uint8 of rank 3."""
    shape = box.shape
    if len(shape) < 2 or min(sorted(shape)[-2:]) < _SIDE_OF_PICTURE:
        return
    if _are_pixels_as_floats(box):
        what, how = "a picture of floats", "declare and return it as uint8, from 0 to 255"
    elif box.dtype == np.uint8 and len(shape) == 2:
        what, how = "a picture without an axis for its channels", "give it one, of size 1"
    elif box.dtype == np.uint8 and len(shape) == 4:
        what, how = "a stack of pictures in colour", "make them grey before they are stacked, or take --core gru"
    else:
        return
    remark(
        f"{env_id} pictures {key}",
        f"{env_id}: observation {key!r} of shape {list(shape)} looks like {what}, and is taken for a vector: {how}",
    )


def _are_pixels_as_floats(box: gym.spaces.Box) -> bool:
    has_channels = len(box.shape) == 3 and not _NUM_CHANNELS.isdisjoint((box.shape[0], box.shape[-1]))
    return has_channels and box.dtype.kind == "f" and not box.low.any() and bool(np.isin(box.high, (1, 255)).all())


def _can_be_outside(box: Any) -> bool:
    """Returns whether the type of its numbers holds any that are outside."""
    is_integer = box.dtype.kind in "iu"
    least, most = (np.iinfo(box.dtype).min, np.iinfo(box.dtype).max) if is_integer else (-np.inf, np.inf)
    return bool((box.low > least).any() or (box.high < most).any())


def _outside(row: np.ndarray, box: Any) -> str | None:
    """Returns the first element that is outside, its value and its bound."""
    outside = (row < box.low) | (row > box.high)
    if not outside.any():
        return None
    at = tuple(int(i) for i in np.argwhere(outside)[0])
    name, bound = ("low", box.low) if row[at] < box.low[at] else ("high", box.high)
    others = f", and {outside.sum() - 1} more are outside" if outside.sum() > 1 else ""
    return f"{list(at)} is {row[at]!s}, but the {name} of its space is {bound[at]!s}{others}"


def is_image(space: gym.Space) -> bool:
    return space.dtype == np.uint8 and len(space.shape or ()) == 3


def channels_trail(shape: tuple[int, ...]) -> bool:
    """Returns whether the channels of an image are its last axis, else they are its first.

    If one end alone leaves a square, it is the channels: boards can have more channels than squares a side. Otherwise
    the smaller end is, and of equal ends the last.
    """
    first, middle, last = shape
    is_square_before, is_square_after = first == middle, middle == last
    return is_square_before if is_square_before != is_square_after else last <= first


def obs_arrays(space: gym.spaces.Dict, num_actors: int) -> dict[str, np.ndarray]:
    """Zeros in the layout of a Dict of Boxes: {key: [N, ...]}."""
    return {key: np.zeros((num_actors, *(box.shape or ())), box.dtype) for key, box in space.items()}


def _leaves(space: gym.Space, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], gym.Space]]:
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        for name, child in children(space):
            yield from _leaves(child, (*path, name))
    elif isinstance(space, gym.spaces.MultiBinary) or _is_mask_of_twos(space, path):
        yield path, gym.spaces.Box(0, 1, space.shape, np.int8)
    else:
        yield path, space


def _is_mask_of_twos(space: gym.Space, path: tuple[str, ...]) -> bool:
    """Returns whether it is an action mask that is declared as choices of two."""
    is_mask = path == (ACTION_MASK,) and isinstance(space, gym.spaces.MultiDiscrete)
    return is_mask and bool((space.nvec == 2).all())  # type: ignore[attr-defined]


def _stored_box(box: Any) -> gym.spaces.Box:
    if isinstance(box, Planes | Identity):
        return box
    dtype: Any = box.dtype
    low, high = box.low, box.high
    if dtype.kind == "b":
        dtype = np.uint8
    elif dtype.kind == "f":
        dtype = np.float64 if dtype.itemsize >= 8 else np.float32
        low, high = _infinite_where_meant(low), _infinite_where_meant(high)
    shape = box.shape or (1,)
    return gym.spaces.Box(low.reshape(shape).astype(dtype), high.reshape(shape).astype(dtype), shape, dtype)


def _infinite_where_meant(bound: np.ndarray) -> np.ndarray:
    """Replaces what float32 cannot hold, such as the largest float64, by infinity."""
    return np.where(np.abs(bound) > np.finfo(np.float32).max, np.copysign(np.inf, bound), bound)


def _misfit(env_id: str, key: str, came: str, wanted: str) -> UsageError:
    return UsageError(
        f"{env_id}: observation {key!r} came as {came}, but its space is {wanted}: change the one or the other"
    )


def _box_store(env_id: str, key: str, box: Any) -> _Store:
    shape, dtype = box.shape, box.dtype
    num_numbers = math.prod(shape)

    def store(value: Any, row: np.ndarray) -> None:
        value = np.asarray(value)
        if value.shape != shape and value.size == num_numbers == 1:
            value = value.reshape(shape)  # a number for an array of one, or the other way round, is not ambiguous
        # Assignment alone would broadcast a wrong shape, and cut floats to integers, without a word.
        fits = value.dtype == dtype or np.can_cast(value.dtype, dtype, "same_kind")
        if value.shape != shape or not fits:
            raise _misfit(env_id, key, f"{value.dtype} of shape {value.shape}", f"{dtype} of shape {shape}")
        if dtype.kind in "iu" and value.dtype != dtype and value.size:
            _require_representable(env_id, key, value, dtype)
        row[...] = value

    return store


def _require_representable(env_id: str, key: str, value: np.ndarray, dtype: np.dtype) -> None:
    """Assignment would let integers of a smaller type wrap around."""
    limits = np.iinfo(dtype)
    for extreme in (value.min(), value.max()):
        if not limits.min <= extreme <= limits.max:
            raise UsageError(
                f"{env_id}: observation {key!r} has the value {extreme}, which {dtype}, the type of its space, cannot "
                "hold: give the space a larger type"
            )


def _one_hot_store(env_id: str, key: str, space: gym.spaces.Discrete) -> _Store:
    start, n = int(space.start), int(space.n)

    def store(value: Any, row: np.ndarray) -> None:
        try:
            choice = operator.index(value) - start  # int() would cut a float, and read a number out of some arrays
        except TypeError:
            raise UsageError(
                f"{env_id}: observation {key!r} came as {value!r}, but its space is {start} to "
                f"{start + n - 1}: return one whole number"
            ) from None
        if not 0 <= choice < n:  # a negative index would count from the end
            raise _misfit(env_id, key, repr(value), f"{start} to {start + n - 1}")
        row[...] = 0.0
        row[choice] = 1.0

    return store


def _one_hots_store(env_id: str, key: str, space: gym.spaces.MultiDiscrete) -> _Store:
    starts, sizes = space.start.ravel().astype(np.int64), space.nvec.ravel()
    begins = np.cumsum(sizes) - sizes

    def store(value: Any, row: np.ndarray) -> None:
        value = np.asarray(value)
        if value.shape != space.shape or value.dtype.kind not in "iu":
            raise _misfit(env_id, key, f"{value.dtype} of shape {value.shape}", f"{space.dtype} of shape {space.shape}")
        choices = value.ravel().astype(np.int64) - starts
        if ((choices < 0) | (choices >= sizes)).any():
            raise _misfit(env_id, key, str(value.tolist()), str(space))
        row[...] = 0.0
        row[begins + choices] = 1.0

    return store
