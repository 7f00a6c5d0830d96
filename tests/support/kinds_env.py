"""A match of two kinds of agents, whose observations say where they come from."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

LENGTH = 5


def box(*shape: int, low: float = -1e6, high: float = 1e6) -> gym.spaces.Box:
    return gym.spaces.Box(low, high, shape, np.float32)


class TwoKinds:
    """Agents `speaker`, `listener_0` and `listener_1` play `LENGTH` steps.

    An observation is full of the number 100 * episode + 10 * agent + step, counted from 1. A step pays the number of
    the next observation.
    """

    possible_agents = ("speaker", "listener_0", "listener_1")
    state_space = box(1)

    def __init__(
        self,
        speaker: tuple[gym.Space, gym.Space] = (box(2), gym.spaces.Discrete(2)),
        listener: tuple[gym.Space, gym.Space] = (box(4), gym.spaces.Discrete(5)),
    ) -> None:
        """Returns the observation space and the action space of each kind."""
        self._spaces = {agent: speaker if agent == "speaker" else listener for agent in self.possible_agents}
        self._episode = 0
        self.agents: list[str] = []
        self.actions: list[dict[str, Any]] = []

    def observation_space(self, agent: str) -> gym.Space:
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> gym.Space:
        return self._spaces[agent][1]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None):
        self._episode, self._step = self._episode + 1, 1
        self.agents = list(self.possible_agents)
        return self._obs(), {}

    def step(self, actions: dict[str, Any]):
        for agent, action in actions.items():
            assert self.action_space(agent).contains(action), (agent, action)
        self.actions.append(actions)
        self._step += 1
        ends = self._step > LENGTH
        rewards = {agent: float(self._number(agent)) for agent in actions}
        self.agents = [] if ends else self.agents
        return self._obs(), rewards, dict.fromkeys(actions, ends), dict.fromkeys(actions, False), {}

    def state(self) -> np.ndarray:
        return np.full(1, self._step, np.float32)

    def close(self) -> None:
        pass

    def _obs(self) -> dict[str, Any]:
        return {agent: _filled(self.observation_space(agent), self._number(agent)) for agent in self.possible_agents}

    def _number(self, agent: str) -> int:
        return 100 * self._episode + 10 * (1 + self.possible_agents.index(agent)) + self._step


def _filled(space: gym.Space, number: int) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {key: _filled(child, number) for key, child in space.items()}
    if isinstance(space, gym.spaces.MultiBinary):
        return np.arange(space.n) % 2 == number % 2
    return np.full(space.shape, number, space.dtype)


MOVE = gym.spaces.Tuple([gym.spaces.Discrete(2), box(1, low=0.0, high=4.0)])
FLY = gym.spaces.Tuple([gym.spaces.MultiDiscrete([3, 4]), box(3, low=0.0, high=4.0)])


class Movers(TwoKinds):
    """The speaker has one choice and one number; the listeners have two and three, and other observations."""

    def __init__(self) -> None:
        speaker = gym.spaces.Dict(ears=box(2), both=box(2))
        super().__init__((speaker, MOVE), (gym.spaces.Dict(eyes=box(4), both=box(3)), FLY))


class Mixed(TwoKinds):
    """The speaker has choices alone, and the listeners numbers alone."""

    def __init__(self) -> None:
        super().__init__((box(2), gym.spaces.Discrete(9)), (box(4), box(3, low=0.0, high=4.0)))
