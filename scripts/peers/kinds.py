"""The kinds of environments that trainers are compared on: each kind needs packages, and a program of a peer."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["doom", "atari", "mujoco", "box2d", "minigrid", "gymnasium"]
"""The last is any other environment of Gymnasium."""

_PATTERNS: dict[Kind, str] = {
    "doom": r"doom_\w+",
    "atari": r"atari_\w+",
    "mujoco": r"(Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|InvertedPendulum|Pusher|Reacher"
    r"|Swimmer|Walker2d)-v[45]",
    "box2d": r"(BipedalWalker|BipedalWalkerHardcore|CarRacing|LunarLander|LunarLanderContinuous)-v\d",
    "minigrid": r"MiniGrid-[\w-]+-v\d",
}


def kind_of(env: str) -> Kind:
    """Of an environment, by its name in this project."""
    return next((kind for kind, pattern in _PATTERNS.items() if re.fullmatch(pattern, env)), "gymnasium")
