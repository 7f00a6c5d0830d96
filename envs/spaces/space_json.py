"""Spaces as JSON, so that a trained policy can say by itself what it sees and does, and as text to compare."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.added.clock import ADDED_FOR_CRITIC
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.partial_box import PartialBox
from sf.envs.spaces.planes import Planes


def to_json(space: gym.Space) -> dict[str, Any]:  # noqa: PLR0911  one for each kind
    """Raises UsageError for a space that is no Box (or one of its subclasses here), Discrete, MultiDiscrete,
    MultiBinary, Dict or Tuple."""
    match space:
        case Planes():  # before Box, which it is
            # Files of before there were steps have none, and are compared with those of today.
            step = {} if space.step is None else {"step": space.step}
            return {"type": "Planes", "shape": list(space.shape), **step}
        case Identity():
            return {"type": "Identity", "n": space.shape[0]}
        case gym.spaces.Box():
            return {
                "type": "PartialBox" if isinstance(space, PartialBox) else "Box",
                "low": _numbers(space.low),
                "high": _numbers(space.high),
                "shape": list(space.shape),
                "dtype": str(space.dtype),
            }
        case gym.spaces.Discrete():
            return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
        case gym.spaces.MultiDiscrete():
            return {
                "type": "MultiDiscrete",
                "nvec": space.nvec.tolist(),
                "start": space.start.tolist(),
                "dtype": str(space.dtype),
            }
        case gym.spaces.MultiBinary():
            return {"type": "MultiBinary", "n": np.asarray(space.n).tolist()}
        case gym.spaces.Dict():
            return {"type": "Dict", "spaces": {str(name): to_json(child) for name, child in space.items()}}
        case gym.spaces.Tuple():
            return {"type": "Tuple", "spaces": [to_json(child) for child in space.spaces]}
    raise UsageError(
        f"the space {space} cannot be written down: use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
    )


def from_json(data: dict[str, Any]) -> gym.Space:  # noqa: PLR0911  one for each kind
    """Returns the space that `to_json` wrote down."""
    match data["type"]:
        case "Planes":
            return Planes(*data["shape"], data.get("step"))  # type: ignore[call-arg]  # of rank 3
        case "Identity":
            return Identity(data["n"])
        case "Box" | "PartialBox" as kind:
            shape, dtype = tuple(data["shape"]), np.dtype(data["dtype"])
            low, high = (np.broadcast_to(np.array(data[name], dtype), shape) for name in ("low", "high"))
            return (PartialBox if kind == "PartialBox" else gym.spaces.Box)(low, high, shape, dtype.type)
        case "Discrete":
            return gym.spaces.Discrete(data["n"], start=data["start"])
        case "MultiDiscrete":
            return gym.spaces.MultiDiscrete(data["nvec"], np.dtype(data["dtype"]).type, start=data["start"])
        case "MultiBinary":
            return gym.spaces.MultiBinary(data["n"])
        case "Dict":
            return gym.spaces.Dict({name: from_json(child) for name, child in data["spaces"].items()})
        case "Tuple":
            return gym.spaces.Tuple([from_json(child) for child in data["spaces"]])
    raise UsageError(f"the space {data['type']!r} is unknown: the file was written by a newer version")


def read(data: Any, what_is_wrong: str) -> gym.Space:
    """`from_json` for the content of a file, which may be anything. Its UsageError begins with `what_is_wrong`."""
    try:
        return from_json(data)
    except Exception as error:  # whatever NumPy and Gymnasium make of it
        raise UsageError(f"{what_is_wrong} ({type(error).__name__}: {error}): take another one") from None


def _numbers(bound: np.ndarray) -> Any:
    """One number where all are equal, as in most spaces; else nested lists."""
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound.tolist()


def layouts(obs_space: gym.spaces.Dict, action_space: gym.Space) -> dict[str, str]:
    """Returns what a network has to know of both spaces, as text that can be compared and shown.

    It describes stored observations without their bounds, which no network knows, and without what the trainer adds for
    the critic.
    """
    actions = ActionSpec.of(action_space)
    sizes = actions.discrete_sizes
    seen = {key: box for key, box in obs_space.items() if key not in ADDED_FOR_CRITIC}
    return {
        "observations": ", ".join(f"{key} {_box_layout(box)}" for key, box in seen.items()),
        "actions": f"{len(sizes)} choices among {sizes} and {actions.num_continuous} real numbers",
    }


def _box_layout(box: gym.Space) -> str:
    step = box.step if isinstance(box, Planes) else None
    kind = "float" if np.issubdtype(box.dtype, np.floating) else str(box.dtype)  # any float is the same to a network
    return f"{kind} {box.shape}" + ("" if step is None else f" in steps of {step:g}")
