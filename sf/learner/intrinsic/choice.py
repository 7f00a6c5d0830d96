"""Makes the intrinsic reward of a run.

Those of this package register themselves here, before one of a user's could take their names.
"""

from __future__ import annotations

import gymnasium as gym

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.learner.intrinsic import counts, rnd  # noqa: F401
from sf.learner.intrinsic.reward import IntrinsicReward
from sf.model.registry import make


def make_intrinsic_reward(name: str, obs_space: gym.spaces.Dict, config: ModelConfig) -> IntrinsicReward:
    """Makes the one of this name. obs_space: what the policy sees. Raises UsageError for a name that there is not, and
    where these observations do not suit it."""
    made = make("intrinsic", name, obs_space=obs_space, config=config)
    if not isinstance(made, IntrinsicReward):
        raise UsageError(f"intrinsic is {name}, which makes a {type(made).__name__}: it must make an IntrinsicReward")
    return made
