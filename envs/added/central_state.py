"""Shows the critic, and not the policy, the state of the environment, as `--critic state` asks for.

A state is stored once for each step of an environment: the row of each of its agents holds an equal share of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import gymnasium as gym
import numpy as np

from sf.envs.added.clock import CENTRAL_STATE
from sf.envs.errors import UsageError
from sf.envs.group import EnvGroup, EnvSpec, Episode, ObsRows, StepResult


class StateShare(gym.spaces.Box):
    """The share of the state of an environment in the row of one of its A agents: [ceil(S / A)] of its S numbers.

    whole: the space of the state.
    """

    def __init__(self, whole: gym.spaces.Box, num_agents: int) -> None:
        size = -(-math.prod(whole.shape) // num_agents)
        low, high = (np.min(whole.low), np.max(whole.high)) if math.prod(whole.shape) else (0, 0)
        super().__init__(low, high, (size,), whole.dtype.type)
        self.whole = whole
        self.num_agents = num_agents

    def cut(self, state: np.ndarray) -> np.ndarray:
        """Returns the shares [A, ceil(S / A)] of a state."""
        padded = np.zeros(self.num_agents * self.shape[0], self.dtype)
        padded[: state.size] = state.reshape(-1)
        return padded.reshape(self.num_agents, -1)

    def joined(self, shares: Any) -> Any:
        """Returns the states [G, ...] of G x A rows [G x A, ceil(S / A)], which are an array or a tensor."""
        size = math.prod(self.whole.shape)
        return shares.reshape(-1, self.num_agents * self.shape[0])[:, :size].reshape(-1, *self.whole.shape)


class StatefulGroup(EnvGroup, Protocol):
    """A group whose `spec.state_space` is a Box."""

    def state(self, env_idx: int) -> np.ndarray:
        """Returns the state of this environment to which its present observations belong."""
        ...


def with_central_state(spec: EnvSpec, env_id: str) -> EnvSpec:
    """Returns the spec with shares of the state among the observations. Raises UsageError where there is no state."""
    if spec.state_space is None:
        raise UsageError(
            f"critic is state, but {env_id} declares no state: give it a Box as `state_space` and a method `state()`, "
            "as PettingZoo has them, or take --critic all"
        )
    if CENTRAL_STATE in spec.obs_space.spaces:
        raise UsageError(f"{env_id} has an observation called {CENTRAL_STATE!r}, which is the critic's: rename it")
    spaces = {**spec.obs_space.spaces, CENTRAL_STATE: StateShare(spec.state_space, spec.num_agents)}
    for_critic = (*spec.for_critic, CENTRAL_STATE)
    return replace(spec, obs_space=gym.spaces.Dict(spaces), env_obs_space=spec.native_obs_space, for_critic=for_critic)


class CentralStateGroup:
    """A group of environments whose states are among the observations. It has all else that the group has."""

    def __init__(self, group: Any, env_id: str) -> None:
        self._group: StatefulGroup = group
        self._env_id = env_id
        self.spec = with_central_state(group.spec, env_id)
        self.num_actors = group.num_actors
        self._share = cast("StateShare", self.spec.obs_space[CENTRAL_STATE])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(obs)
        self._write(obs[CENTRAL_STATE])

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = self._group.step(discrete, continuous, obs, result)
        self._write(obs[CENTRAL_STATE])
        return episodes

    def _write(self, rows: Sequence[np.ndarray]) -> None:
        num_agents, whole = self._share.num_agents, self._share.whole
        for env_idx in range(self.num_actors // num_agents):
            state = np.asarray(self._group.state(env_idx))
            if state.shape != whole.shape:
                raise UsageError(
                    f"{self._env_id}: state() returned an array of the shape {state.shape}, and `state_space` is of "
                    f"the shape {whole.shape}: make them equal"
                )
            for n, share in enumerate(self._share.cut(state), env_idx * num_agents):
                rows[n][...] = share
