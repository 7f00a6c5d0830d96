"""An environment under a time limit that notes at each reset how many steps it has made beyond whole episodes."""

import os

import gymnasium as gym
import numpy as np

LIMIT = 10


class Stepper(gym.Env):
    observation_space = gym.spaces.Box(0, LIMIT, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self._steps = self._of_all = 0

    def reset(self, *, seed=None, options=None):
        if self._of_all:
            with open(os.environ["SF_TEST_STEPPER"], "a") as file:
                file.write(f"{self._of_all % LIMIT}\n")
        self._steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._steps += 1
        self._of_all += 1
        return np.full(1, self._steps, np.float32), 1.0, False, False, {}


def limited():
    return gym.wrappers.TimeLimit(Stepper(), LIMIT)
