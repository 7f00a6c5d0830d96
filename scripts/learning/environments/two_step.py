"""The two-step game of Rashid et al. 2018 (QMIX): what the first agent chooses decides what both can win next."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

PAYOFFS = np.array([[[7.0, 7.0], [7.0, 7.0]], [[0.0, 1.0], [1.0, 8.0]]])  # by the game, and the choice of each agent


class TwoStep:
    """Both agents are paid the same, 8 at best, and see which game they play. PettingZoo's ParallelEnv API."""

    metadata: ClassVar[dict[str, Any]] = {}
    render_mode = None
    possible_agents: ClassVar[list[str]] = ["first", "second"]
    state_space = gym.spaces.Box(0.0, 1.0, (3,), np.float32)

    def __init__(self) -> None:
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> gym.Space:
        return self.state_space

    def action_space(self, agent: str) -> gym.Space:
        return gym.spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        self.agents, self._game = list(self.possible_agents), -1
        return self._show(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        is_over, payoff = self._game >= 0, 0.0
        if is_over:
            payoff = float(PAYOFFS[self._game, actions["first"], actions["second"]])
        else:
            self._game = int(actions["first"])
        rewards, ends = dict.fromkeys(self.agents, payoff), dict.fromkeys(self.agents, is_over)
        obs, infos = self._show(), {agent: {} for agent in self.agents}
        if is_over:
            self.agents = []
        return obs, rewards, ends, dict.fromkeys(ends, False), infos

    def state(self) -> np.ndarray:
        return np.eye(3, dtype=np.float32)[self._game + 1]

    def close(self) -> None:
        pass

    def _show(self) -> dict[str, np.ndarray]:
        return {agent: self.state() for agent in self.possible_agents}
