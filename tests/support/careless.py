"""An environment that draws from generators of the whole process, as many do, and notes what it drew."""

import os
import random
from pathlib import Path

import gymnasium as gym
import numpy as np


class Careless(gym.Env):
    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, folder):
        self._log = Path(folder) / str(os.getpid())

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        drawn = (random.random(), np.random.random())
        with self._log.open("a") as log:
            log.write(f"{drawn}\n")
        return np.array(drawn, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, True, False, {}
