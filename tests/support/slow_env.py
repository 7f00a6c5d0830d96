"""An environment whose steps take long, and no core."""

import time

import gymnasium as gym
import numpy as np


class Slow(gym.Env):
    """Ten steps of five milliseconds. Choose 1."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._num_steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        time.sleep(0.005)
        self._num_steps += 1
        return np.zeros(3, np.float32), float(action), self._num_steps == 10, False, {}
