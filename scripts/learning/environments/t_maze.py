"""A task that asks for memory, for the bench of what trainers learn."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np


class TMaze(gym.Env):
    """A sign at the start of a corridor says which way to turn at its end (Bakker 2002).

    Right is 1, wrong is -1, and each step without a use costs 0.05. Without memory the best return is 0.
    """

    LENGTH: ClassVar[int] = 20
    MOST_STEPS: ClassVar[int] = 60
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)  # the sign, in the first step; the end
    action_space = gym.spaces.Discrete(3)  # on, left, right

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._sign = int(self.np_random.integers(2))
        self._place = self._num_steps = 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._num_steps += 1
        is_at_end, goes_on = self._place == self.LENGTH, action == 0
        if is_at_end and not goes_on:
            return self._obs(), 1.0 if action - 1 == self._sign else -1.0, True, False, {}
        self._place += goes_on and not is_at_end
        reward = 0.0 if goes_on and not is_at_end else -0.05
        return self._obs(), reward, False, self._num_steps == self.MOST_STEPS, {}

    def _obs(self) -> np.ndarray:
        sign = 2 * self._sign - 1 if self._num_steps == 0 else 0
        return np.array([sign, self._place == self.LENGTH], np.float32)
