"""An environment that changes the working directory of its process, as some do to load their files."""

import os

import gymnasium as gym
import numpy as np


class Moving(gym.Env):
    """Its episodes are 2 steps long. It needs a directory `to` wherever it is made, and stays in it."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    raises = False

    def __init__(self):
        os.makedirs("to", exist_ok=True)
        os.chdir("to")
        if self.raises:
            raise RuntimeError("it raises there")

    def reset(self, *, seed=None, options=None):
        self._num_steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._num_steps += 1
        return np.zeros(1, np.float32), 1.0, self._num_steps == 2, False, {}


class MovingAndRaising(Moving):
    raises = True
