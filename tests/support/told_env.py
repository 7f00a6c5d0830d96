"""An environment that tells one observer what it only hints at to another, and pays nothing."""

import gymnasium as gym
import numpy as np

CHOICES = 4


class Told(gym.Env):
    """`told` is the right action, `hint` the next number. An episode says how often the action was right."""

    _shown = gym.spaces.Box(0, 1, (CHOICES,), np.float32)
    observation_space = gym.spaces.Dict(hint=_shown, told=_shown)
    action_space = gym.spaces.Discrete(CHOICES)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._num_steps = self._num_right = 0
        return self._obs(), {}

    def step(self, action):
        self._num_steps += 1
        self._num_right += action == self._right
        is_over = self._num_steps == 8
        info = {"episode_stats": {"right": self._num_right / 8}} if is_over else {}
        return self._obs(), 0.0, is_over, False, info

    def _obs(self):
        self._right = int(self.np_random.integers(CHOICES))
        numbers = np.eye(CHOICES, dtype=np.float32)
        return {"hint": numbers[(self._right + 1) % CHOICES], "told": numbers[self._right]}


def as_told(obs):
    """A player that is told."""
    return int(obs["told"].argmax())
