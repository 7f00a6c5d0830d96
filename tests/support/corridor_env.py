"""A corridor whose far end pays, and which random steps do not get through."""

import gymnasium as gym
import numpy as np

LENGTH = 24
SETTINGS = ["--num_envs_per_worker", "8", "--num_batches_per_epoch", "2", "--stats_avg", "50"]
SETTINGS += ["--lr_schedule", "constant", "--exploration_loss_coeff", "0.01"]


class Corridor(gym.Env):
    """It takes `LENGTH` steps to the right, of 2 x `LENGTH`. It shows where it stands."""

    observation_space = gym.spaces.Box(0, 1, (LENGTH + 1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = self._num_steps = 0
        return self._obs(), {}

    def step(self, action):
        self._num_steps += 1
        self._at = max(0, self._at + (1 if action else -1))
        is_there = self._at == LENGTH
        return self._obs(), float(is_there), is_there, self._num_steps == 2 * LENGTH, {}

    def _obs(self):
        return np.eye(LENGTH + 1, dtype=np.float32)[self._at]


def go_right(obs):
    """A player that knows the way."""
    return 1
