"""Registers an environment when it is imported; the entry point names this module."""

import gymnasium as gym
import numpy as np

from sf.envs import register_env


@register_env("my_bandit")
class Bandit(gym.Env):
    """One of four arms pays."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(action == 2), True, False, {}
