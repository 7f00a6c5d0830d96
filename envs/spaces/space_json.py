"""Spaces as JSON, so that a trained policy can say by itself what it sees and does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError


def to_json(space: gym.Space) -> dict[str, Any]:
    """Raises UsageError for a space that is not Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple."""
    if isinstance(space, gym.spaces.Box):
        return {
            "type": "Box",
            "low": _numbers(space.low),
            "high": _numbers(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if isinstance(space, gym.spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        return {
            "type": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, gym.spaces.MultiBinary):
        return {"type": "MultiBinary", "n": np.asarray(space.n).tolist()}
    if isinstance(space, gym.spaces.Dict):
        return {"type": "Dict", "spaces": {str(name): to_json(child) for name, child in space.items()}}
    if isinstance(space, gym.spaces.Tuple):
        return {"type": "Tuple", "spaces": [to_json(child) for child in space.spaces]}
    raise UsageError(
        f"the space {space} cannot be written down: use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
    )


def from_json(data: dict[str, Any]) -> gym.Space:
    """The space that `to_json` wrote down."""
    kind = data["type"]
    if kind == "Box":
        shape, dtype = tuple(data["shape"]), np.dtype(data["dtype"])
        low, high = (np.broadcast_to(np.array(data[name], dtype), shape) for name in ("low", "high"))
        return gym.spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        return gym.spaces.Discrete(data["n"], start=data["start"])
    if kind == "MultiDiscrete":
        return gym.spaces.MultiDiscrete(data["nvec"], dtype=np.dtype(data["dtype"]).type, start=data["start"])
    if kind == "MultiBinary":
        return gym.spaces.MultiBinary(data["n"])
    if kind == "Dict":
        return gym.spaces.Dict({name: from_json(child) for name, child in data["spaces"].items()})
    if kind == "Tuple":
        return gym.spaces.Tuple([from_json(child) for child in data["spaces"]])
    raise UsageError(f"{kind!r} is not a space that is known here: the file is of a newer version")


def read(data: Any, what_is_wrong: str) -> gym.Space:
    """`from_json` for the content of a file, which may be anything. Its UsageError begins with `what_is_wrong`."""
    try:
        return from_json(data)
    except Exception as error:  # whatever NumPy and Gymnasium make of it
        raise UsageError(f"{what_is_wrong} ({type(error).__name__}: {error}): take another one") from None


def _numbers(bound: np.ndarray) -> Any:
    """One number where all are equal, as in most spaces; else nested lists."""
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound.tolist()
