"""Twelve agents of two kinds, and twelve of one kind that has the spaces of both, for what kinds cost."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

NUM_STEPS = 50
SCOUT, CARRIER = (10, 5), (16, 3)  # numbers of an observation, choices
BOTH = (16, 5)


class TwoKinds:
    """Each agent is paid where it chooses the largest of its first numbers. PettingZoo's ParallelEnv API."""

    kinds: ClassVar[dict[str, tuple[int, int]]] = {
        **{f"scout_{n}": SCOUT for n in range(6)},
        **{f"carrier_{n}": CARRIER for n in range(6)},
    }
    metadata: ClassVar[dict[str, Any]] = {}
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = list(self.kinds)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> gym.Space:
        return gym.spaces.Box(-1.0, 1.0, (self.kinds[agent][0],), np.float32)

    def action_space(self, agent: str) -> gym.Space:
        return gym.spaces.Discrete(self.kinds[agent][1])

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        if seed is not None or not hasattr(self, "_rng"):
            self._rng = np.random.default_rng(seed)
        self.agents, self._step = list(self.possible_agents), 0
        return self._show(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        best = {agent: int(self._obs[agent][: self.kinds[agent][1]].argmax()) for agent in self.agents}
        rewards = {agent: float(actions[agent] == best[agent]) for agent in self.agents}
        self._step += 1
        ends = dict.fromkeys(self.agents, self._step == NUM_STEPS)
        obs, infos = self._show(), {agent: {} for agent in self.agents}
        if self._step == NUM_STEPS:
            self.agents = []
        return obs, rewards, ends, dict.fromkeys(ends, False), infos

    def close(self) -> None:
        pass

    def _show(self) -> dict[str, np.ndarray]:
        numbers = self._rng.random((len(self.agents), BOTH[0]), np.float32) * 2 - 1
        self._obs = {agent: row[: self.kinds[agent][0]] for agent, row in zip(self.agents, numbers, strict=True)}
        return self._obs


class Padded(TwoKinds):
    """The same with the larger observation and the larger action for all."""

    kinds: ClassVar[dict[str, tuple[int, int]]] = dict.fromkeys(TwoKinds.kinds, BOTH)


class OneKind(Padded):
    """The same with the spaces of the rows of both kinds: each agent also sees a kind and what is allowed."""

    def observation_space(self, agent: str) -> gym.Space:
        kind, mask = gym.spaces.Box(0.0, 1.0, (2,), np.float32), gym.spaces.Box(0, 1, (BOTH[1],), np.int8)
        spaces = {"obs": super().observation_space(agent), "agent_kind": kind, "action_mask": mask}
        return gym.spaces.Dict(spaces)

    def _show(self) -> dict[str, Any]:
        kind, mask = np.array([1.0, 0.0], np.float32), np.ones(BOTH[1], np.int8)
        return {agent: {"obs": obs, "agent_kind": kind, "action_mask": mask} for agent, obs in super()._show().items()}
