"""Several agents in the manner of Gymnasium, as agents of a match.

Some packages have no class for several agents: their environment is one of Gymnasium whose observations and actions are
Tuples with a part for each agent, and whose rewards are a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.groups import calls
from sf.envs.spaces.actions import ActionSpec, decoder, without_multi_binary


def has_several_agents(env_id: str, env: gym.Env) -> bool:
    """Returns whether it is an environment of several agents in the manner of Gymnasium, or of Sample Factory.

    An environment of one agent may have Tuples, too. So one with two of them makes a step, whose reward shows it.
    """
    if _is_listed(env):
        return True
    action_space, obs_space = getattr(env, "action_space", None), getattr(env, "observation_space", None)
    if not isinstance(action_space, gym.spaces.Tuple) or not isinstance(obs_space, gym.spaces.Tuple):
        return False
    num_agents = len(action_space.spaces)
    if len(obs_space.spaces) != num_agents:
        return False
    calls.reset(env_id, env, seed=0)
    reward = calls.step(env_id, env, action_space.sample())[1]
    return isinstance(reward, list | tuple | np.ndarray) and np.shape(reward) == (num_agents,)


class TupleAgents:
    """The `ParallelEnv` of such an environment: its agents are 0 to n - 1.

    An agent that has ended before the others leaves. The environment gets the first of its actions for it from then on.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self.possible_agents = list(range(len(env.action_space.spaces)))
        self.agents: list[int] = []
        self.render_mode = getattr(env, "render_mode", None)
        self.metadata = getattr(env, "metadata", None) or {}
        self._when_away = [_first_action(space) for space in env.action_space.spaces]

    def observation_space(self, agent: int) -> gym.Space:
        return self._env.observation_space.spaces[agent]

    def action_space(self, agent: int) -> gym.Space:
        return self._env.action_space.spaces[agent]

    def reset(self, seed: int | None = None) -> tuple[dict[int, Any], dict[int, Any]]:
        obs, _ = self._env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return dict(enumerate(obs)), {}

    def step(self, actions: Mapping[int, Any]) -> tuple[dict[int, Any], ...]:
        joint = tuple(actions.get(agent, self._when_away[agent]) for agent in self.possible_agents)
        obs, rewards, terminated, truncated, info = self._env.step(joint)
        terminations, truncations = self._of_each(terminated), self._of_each(truncated)
        self.agents = [agent for agent in self.agents if not (terminations[agent] or truncations[agent])]
        return dict(enumerate(obs)), dict(enumerate(rewards)), terminations, truncations, self._of_each(info)

    def render(self) -> Any:
        return self._env.render()

    def close(self) -> None:
        self._env.close()

    def _of_each(self, value: Any) -> dict[int, Any]:
        """Returns for each agent its part of a sequence, or else what holds for all."""
        if isinstance(value, list | tuple) or np.shape(value) == (len(self.possible_agents),):
            return dict(enumerate(value))
        return dict.fromkeys(self.possible_agents, value)


class ListedAgents(TupleAgents):
    """The `ParallelEnv` of an environment with `is_multiagent` and `num_agents`, as Sample Factory has them.

    All agents have the environment's spaces; observations, rewards, ends and infos are lists. Such an environment
    begins anew by itself where the last agent has ended, and is reset once more then.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self.possible_agents = list(range(env.num_agents))
        self.agents: list[int] = []
        self.render_mode = getattr(env, "render_mode", None)
        self.metadata = getattr(env, "metadata", None) or {}
        self._when_away = [_first_action(env.action_space)] * env.num_agents

    def observation_space(self, agent: int) -> gym.Space:
        return self._env.observation_space

    def action_space(self, agent: int) -> gym.Space:
        return self._env.action_space


def _is_listed(env: Any) -> bool:
    return bool(getattr(env, "is_multiagent", False)) and hasattr(env, "num_agents")


def agents_of(env: Any) -> TupleAgents:
    """Returns the agents of an environment for which `has_several_agents` is true."""
    return ListedAgents(env) if _is_listed(env) else TupleAgents(env)


def _first_action(space: gym.Space) -> Any:
    space = without_multi_binary(space)
    spec = ActionSpec.of(space)
    return decoder(space)(np.zeros(len(spec.discrete_sizes), np.int32), np.zeros(spec.num_continuous, np.float32))
