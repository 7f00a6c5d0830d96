"""An environment that shows and takes as much as it is told to: what a designer adds to a game."""

import gymnasium as gym
import numpy as np


class Growing(gym.Env):
    """Pays for the choice that the first number of the observation names. The others are noise."""

    def __init__(self, num_entries=4, num_choices=3, num_steps=16):
        self.observation_space = gym.spaces.Box(-10.0, 10.0, (num_entries,), np.float32)
        self.action_space = gym.spaces.Discrete(num_choices)
        self._num_steps = num_steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._obs(), {}

    def step(self, action):
        reward = float(action == self._right)
        self._step += 1
        return self._obs(), reward, self._step == self._num_steps, False, {}

    def _obs(self):
        self._right = self.np_random.integers(3)
        obs = self.np_random.normal(size=self.observation_space.shape).clip(-9, 9)
        obs[0] = self._right - 1.0
        return obs.astype(np.float32)
