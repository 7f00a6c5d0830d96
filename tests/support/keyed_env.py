"""An environment that counts which of its three actions were taken."""

import gymnasium as gym
import numpy as np


class Keyed(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012
    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(3)
    action_names = ("NOOP", "LEFT", "RIGHT")

    def __init__(self, num_steps=6, truncates=False, render_mode=None):
        self._num_steps, self._truncates, self.render_mode = num_steps, truncates, render_mode

    def reset(self, *, seed=None, options=None):
        self._taken = []
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._taken.append(int(action))
        is_over = len(self._taken) == self._num_steps
        stats = {name.lower(): self._taken.count(n) for n, name in enumerate(self.action_names)}
        info = {"episode_stats": stats} if is_over else {}
        return np.zeros(1, np.float32), 1.0, is_over and not self._truncates, is_over and self._truncates, info

    def render(self):
        return np.full((20, 30, 3), 30 * len(self._taken), np.uint8)
