"""Any supported observation space as a flat Dict of Boxes, and a writer of observations into rows of memory.

An image is a uint8 Box of rank 3, with its channels last (H, W, C) or first (C, H, W); it stays as the
environment gives it. Integers stay integers; floats are stored as float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.group import ObsRows

_Store = Callable[[Any, np.ndarray], None]


class ObsWriter:
    """Writes the observations of one environment, checked against the space that it declares.

    A bare Box is {"obs": Box}, a nested Dict has its keys joined by "/", a Discrete is one-hot, a MultiBinary is a
    Box of int8, and a Box without axes gets one. `space` is what the rows look like.
    """

    def __init__(self, env_id: str, space: gym.Space) -> None:
        """Raises ValueError for a space that is not a Box, Discrete, MultiBinary, or a Dict of supported spaces."""
        self._env_id = env_id
        self._leaves: list[tuple[str, tuple[str, ...], _Store]] = []
        boxes: dict[str, gym.Space] = {}
        for path, leaf in _leaves(env_id, space, ()):
            key = "/".join(path) or "obs"
            if key in boxes:
                raise ValueError(f"{env_id}: two observations are named {key!r}: rename a key of the Dict")
            if isinstance(leaf, gym.spaces.Discrete):
                boxes[key] = gym.spaces.Box(0.0, 1.0, (int(leaf.n),), np.float32)
                store = _one_hot_store(env_id, key, leaf)
            else:
                boxes[key] = _stored_box(leaf)
                store = _box_store(env_id, key, leaf)
            self._leaves.append((key, path, store))
        self.space = gym.spaces.Dict(boxes)

    def write(self, obs: Any, rows: ObsRows, actor_idx: int) -> None:
        """Raises ValueError for an observation that has not the shape or the kind of number of its space."""
        for key, path, store in self._leaves:
            store(self._at(obs, path), rows[key][actor_idx])

    def write_batch(self, obs: Any, rows: ObsRows) -> None:
        """`write` for all actors, from observations that are batched in the way of `gymnasium.vector`."""
        for key, path, store in self._leaves:
            for value, row in zip(self._at(obs, path), rows[key], strict=True):
                store(value, row)

    def check_bounds(self, rows: ObsRows, actor_idx: int) -> None:
        """Raises ValueError where a written observation lies outside of its space. Slow: for a start only."""
        for key, box in self.space.items():
            row = rows[key][actor_idx]
            if not box.contains(row):
                raise ValueError(
                    f"{self._env_id}: observation {key!r} has values from {row.min()} to {row.max()}, but "
                    f"its space is {box}: widen the low and high of the space, or clip the observation"
                )

    def _at(self, obs: Any, path: tuple[str, ...]) -> Any:
        try:
            for name in path:
                obs = obs[name]
        except (KeyError, IndexError, TypeError):
            raise ValueError(
                f"{self._env_id}: observation {'/'.join(path)!r} is in the observation space, but not in "
                "what the environment returned: return every key of the space at every step"
            ) from None
        return obs


def is_image(space: gym.Space) -> bool:
    return space.dtype == np.uint8 and len(space.shape or ()) == 3


def channels_trail(shape: tuple[int, ...]) -> bool:
    """Whether the channels of an image are its last axis, else they are its first.

    They are the end that makes the rest a square, as in boards, which can have more channels than squares a side; where
    neither or both do, the smaller end.
    """
    first, middle, last = shape
    is_square_before, is_square_after = first == middle, middle == last
    return is_square_before if is_square_before != is_square_after else last <= first


def obs_arrays(space: gym.spaces.Dict, num_actors: int) -> dict[str, np.ndarray]:
    """Zeros in the layout of a Dict of Boxes: {key: [N, ...]}."""
    return {key: np.zeros((num_actors, *(box.shape or ())), box.dtype) for key, box in space.items()}


def _leaves(
    env_id: str, space: gym.Space, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], gym.spaces.Box | gym.spaces.Discrete]]:
    if isinstance(space, gym.spaces.Dict):
        for name, child in space.items():
            yield from _leaves(env_id, child, (*path, name))
    elif isinstance(space, gym.spaces.MultiBinary):
        yield path, gym.spaces.Box(0, 1, space.shape, np.int8)
    elif isinstance(space, gym.spaces.Box | gym.spaces.Discrete):
        yield path, space
    else:
        name = "/".join(path) or "obs"
        raise ValueError(
            f"{env_id}: observation {name!r} has the unsupported space {space}: wrap the environment with "
            "gymnasium.wrappers.FlattenObservation (Tuple, MultiDiscrete), FilterObservation "
            "(leave a key out) or TransformObservation (convert it to a Box)"
        )


def _stored_box(box: gym.spaces.Box) -> gym.spaces.Box:
    dtype: Any = box.dtype
    if dtype.kind == "b":
        dtype = np.uint8
    elif np.issubdtype(dtype, np.floating):
        dtype = np.float32
    shape = box.shape or (1,)
    with np.errstate(over="ignore"):  # the largest float64 becomes infinity, which is what is meant
        low, high = (bound.reshape(shape).astype(dtype) for bound in (box.low, box.high))
    return gym.spaces.Box(low, high, shape, dtype)


def _box_store(env_id: str, key: str, box: gym.spaces.Box) -> _Store:
    shape, dtype = box.shape, box.dtype

    def store(value: Any, row: np.ndarray) -> None:
        value = np.asarray(value)
        # Assignment alone would broadcast a wrong shape, and cut floats to integers, without a word.
        fits = value.dtype == dtype or np.can_cast(value.dtype, dtype, "same_kind")
        if value.shape != shape or not fits:
            raise ValueError(
                f"{env_id}: observation {key!r} came as {value.dtype} of shape {value.shape}, but its space "
                f"is {dtype} of shape {shape}: change the one or the other"
            )
        row[...] = value

    return store


def _one_hot_store(env_id: str, key: str, space: gym.spaces.Discrete) -> _Store:
    start, n = int(space.start), int(space.n)

    def store(value: Any, row: np.ndarray) -> None:
        try:
            choice = operator.index(value) - start  # int() would cut a float, and read a number out of some arrays
        except TypeError:
            choice = -1
        if not 0 <= choice < n:  # a negative index would count from the end
            raise ValueError(
                f"{env_id}: observation {key!r} came as {value!r}, but its space is {start} to "
                f"{start + n - 1}: change the one or the other"
            )
        row[...] = 0.0
        row[choice] = 1.0

    return store
