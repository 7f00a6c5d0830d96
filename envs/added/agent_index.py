"""Shows each agent which of the agents of its environment it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.group import EnvGroup, EnvSpec, Episode, ObsRows, StepResult
from sf.envs.options import EnvOptions
from sf.envs.spaces.identity import Identity

AGENT_INDEX = "agent_index"
"""The name of the observation: [A] float32, one-hot."""

_LARGEST_TEAM = 16  # in which members may have parts of their own; in a crowd all are alike


def is_shown(env_id: str, spec: EnvSpec, options: EnvOptions) -> bool:
    """Returns whether the index is to be added. An environment may show it by itself, under the same name.

    Raises UsageError if `show_agent` is true for an environment of one agent.
    """
    if options.show_agent is True and spec.num_agents == 1:
        raise UsageError(f"show_agent is true, but {env_id} has one agent: leave it out")
    team_sizes = [spec.teams.count(team) for team in {*spec.teams}]
    differ = bool(spec.kinds) or any(2 <= size <= _LARGEST_TEAM for size in team_sizes)
    wanted = differ if options.show_agent == "auto" else options.show_agent
    return wanted and AGENT_INDEX not in spec.obs_space.spaces


def with_index(spec: EnvSpec) -> EnvSpec:
    """Returns the spec with the index among the observations."""
    index = {AGENT_INDEX: Identity(spec.num_agents)}
    native = spec.native_obs_space
    parts = native.spaces if isinstance(native, gym.spaces.Dict) else spec.obs_space.spaces
    return replace(
        spec,
        obs_space=gym.spaces.Dict({**spec.obs_space.spaces, **index}),
        env_obs_space=gym.spaces.Dict({**parts, **index}),
    )


class IndexedGroup:
    """A group of environments whose agents see their index. It has all else that the group has."""

    def __init__(self, group: Any) -> None:
        self._group: EnvGroup = group
        self.spec = with_index(group.spec)
        self.num_actors = group.num_actors
        num_agents = self.spec.num_agents
        self._indices = [*np.tile(np.eye(num_agents, dtype=np.float32), (self.num_actors // num_agents, 1))]  # [N, A]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(obs)
        self._write(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = self._group.step(discrete, continuous, obs, result)
        self._write(obs)
        return episodes

    def _write(self, obs: ObsRows) -> None:
        for row, index in zip(obs[AGENT_INDEX], self._indices, strict=True):
            row[...] = index
