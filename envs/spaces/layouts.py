"""What a network has to know of spaces, as text that can be compared and shown."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from sf.envs.clock import CLOCK
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.planes import Planes


def layouts(obs_space: gym.spaces.Dict, action_space: gym.Space) -> dict[str, str]:
    """Of both, by what they are called in a sentence."""
    return {"observations": _obs_layout(obs_space), "actions": _action_layout(action_space)}


def _obs_layout(space: gym.spaces.Dict) -> str:
    """Of observations as they are stored. Without bounds, which no network knows, and without the clock."""
    return ", ".join(f"{key} {_numbers(box)}" for key, box in space.items() if key != CLOCK)


def _action_layout(space: gym.Space) -> str:
    spec = ActionSpec.of(space)
    return f"{len(spec.discrete_sizes)} choices among {spec.discrete_sizes} and {spec.num_continuous} real numbers"


def _numbers(box: gym.Space) -> str:
    step = box.step if isinstance(box, Planes) else None
    kind = "float" if np.issubdtype(box.dtype, np.floating) else str(box.dtype)  # any float is the same to a network
    return f"{kind} {box.shape}" + ("" if step is None else f" in steps of {step:g}")
