"""Spaces as JSON, so that a trained policy can say by itself what it sees and does, and as text to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.clock import CLOCK
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.planes import Planes


def to_json(space: gym.Space) -> dict[str, Any]:
    """Raises UsageError for a space that is not Planes, Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple."""
    for kind, written, _ in _KINDS:
        if isinstance(space, kind):
            return {"type": kind.__name__, **written(space)}
    raise UsageError(
        f"the space {space} cannot be written down: use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
    )


def from_json(data: dict[str, Any]) -> gym.Space:
    """Returns the space that `to_json` wrote down."""
    for kind, _, made in _KINDS:
        if data["type"] == kind.__name__:
            return made(data)
    raise UsageError(f"{data['type']!r} is not a space that is known here: the file is of a newer version")


def read(data: Any, what_is_wrong: str) -> gym.Space:
    """`from_json` for the content of a file, which may be anything. Its UsageError begins with `what_is_wrong`."""
    try:
        return from_json(data)
    except Exception as error:  # whatever NumPy and Gymnasium make of it
        raise UsageError(f"{what_is_wrong} ({type(error).__name__}: {error}): take another one") from None


def _numbers(bound: np.ndarray) -> Any:
    """One number where all are equal, as in most spaces; else nested lists."""
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound.tolist()


def _box(data: dict[str, Any]) -> gym.Space:
    shape, dtype = tuple(data["shape"]), np.dtype(data["dtype"])
    low, high = (np.broadcast_to(np.array(data[name], dtype), shape) for name in ("low", "high"))
    return gym.spaces.Box(low, high, shape, dtype.type)


def _multi_discrete(data: dict[str, Any]) -> gym.Space:
    return gym.spaces.MultiDiscrete(data["nvec"], dtype=np.dtype(data["dtype"]).type, start=data["start"])


_KINDS: tuple[tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], gym.Space]], ...] = (
    (
        Planes,
        # Files of before there were steps have none, and are compared with those of today.
        lambda space: {"shape": list(space.shape), **({} if space.step is None else {"step": space.step})},
        lambda data: Planes(*data["shape"], data.get("step")),  # type: ignore[call-arg]  # of rank 3
    ),  # before Box, which it is
    (
        gym.spaces.Box,
        lambda space: {
            "low": _numbers(space.low),
            "high": _numbers(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        },
        _box,
    ),
    (
        gym.spaces.Discrete,
        lambda space: {"n": int(space.n), "start": int(space.start)},
        lambda data: gym.spaces.Discrete(data["n"], start=data["start"]),
    ),
    (
        gym.spaces.MultiDiscrete,
        lambda space: {"nvec": space.nvec.tolist(), "start": space.start.tolist(), "dtype": str(space.dtype)},
        _multi_discrete,
    ),
    (
        gym.spaces.MultiBinary,
        lambda space: {"n": np.asarray(space.n).tolist()},
        lambda data: gym.spaces.MultiBinary(data["n"]),
    ),
    (
        gym.spaces.Dict,
        lambda space: {"spaces": {str(name): to_json(child) for name, child in space.items()}},
        lambda data: gym.spaces.Dict({name: from_json(child) for name, child in data["spaces"].items()}),
    ),
    (
        gym.spaces.Tuple,
        lambda space: {"spaces": [to_json(child) for child in space.spaces]},
        lambda data: gym.spaces.Tuple([from_json(child) for child in data["spaces"]]),
    ),
)
"""Each kind of space, what is written of it beside its name, and how it is made from that."""


def layouts(obs_space: gym.spaces.Dict, action_space: gym.Space) -> dict[str, str]:
    """Returns what a network has to know of both spaces, as text that can be compared and shown."""
    return {"observations": _obs_layout(obs_space), "actions": _action_layout(action_space)}


def _obs_layout(space: gym.spaces.Dict) -> str:
    """Describes stored observations, without their bounds, which no network knows, and without the clock."""
    return ", ".join(f"{key} {_box_layout(box)}" for key, box in space.items() if key != CLOCK)


def _action_layout(space: gym.Space) -> str:
    spec = ActionSpec.of(space)
    return f"{len(spec.discrete_sizes)} choices among {spec.discrete_sizes} and {spec.num_continuous} real numbers"


def _box_layout(box: gym.Space) -> str:
    step = box.step if isinstance(box, Planes) else None
    kind = "float" if np.issubdtype(box.dtype, np.floating) else str(box.dtype)  # any float is the same to a network
    return f"{kind} {box.shape}" + ("" if step is None else f" in steps of {step:g}")
