"""Shows the critic, and not the policy, how many steps an episode has lasted.

A truncated episode that counts as ended has a value that depends on the time, which few environments show (Pardo et al.
2018, "Time limits in reinforcement learning"). The policy acts without, wherever it plays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.group import EnvGroup, EnvSpec, Episode, ObsRows, StepResult

CLOCK = "critic_clock"
"""The name of the observation: [1] float32, 0 in the first step of an episode."""
CENTRAL_STATE = "central_state"
"""The name of another: see `sf.envs.added.central_state`."""
ADDED_FOR_CRITIC = (CLOCK, CENTRAL_STATE)


def with_clock(spec: EnvSpec) -> EnvSpec:
    """Returns the spec with the clock among the observations. The environment must have none of that name."""
    assert CLOCK not in spec.obs_space.spaces
    space = gym.spaces.Box(0.0, np.inf, (1,), np.float32)
    spaces = {**spec.obs_space.spaces, CLOCK: space}
    for_critic = (*spec.for_critic, CLOCK)
    return replace(spec, obs_space=gym.spaces.Dict(spaces), env_obs_space=spec.native_obs_space, for_critic=for_critic)


class ClockedGroup:
    """A group of environments whose actors' steps are counted. It has all else that the group has."""

    def __init__(self, group: Any) -> None:
        self._group: EnvGroup = group
        self._steps_of_late_first = getattr(group, "steps_of_late_first", np.zeros(group.num_actors))
        self.spec = with_clock(group.spec)
        self.num_actors = group.num_actors
        self._steps = np.zeros(group.num_actors, np.float32)  # [N]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(obs)
        self._steps[:] = 0.0
        self._write(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = self._group.step(discrete, continuous, obs, result)
        self._steps += result.valid
        self._steps[result.first] = 0.0
        is_late = result.first & ~result.valid
        self._steps[is_late] = self._steps_of_late_first[is_late]
        self._write(obs)
        return episodes

    def _write(self, obs: ObsRows) -> None:
        for row, steps in zip(obs[CLOCK], self._steps, strict=True):
            row[0] = steps
