"""Numbers of one's own about every episode: they are `stats/NAME` in metrics.jsonl, TensorBoard and the summary.

python own_metrics.py
sf-train --env own_metrics:measured
"""

import gymnasium as gym
import numpy as np

from sf import main
from sf.envs import register_env


class Measured(gym.Wrapper):
    """How far the pole leaned at most, and how often the cart was pushed the other way."""

    def reset(self, **kwargs):
        self._largest_angle, self._num_turns, self._last_action = 0.0, 0, None
        return self.env.reset(**kwargs)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._largest_angle = max(self._largest_angle, abs(float(obs[2])))
        self._num_turns += self._last_action not in (None, action)
        self._last_action = action
        if terminated or truncated:
            stats = {"largest_angle_deg": np.rad2deg(self._largest_angle), "turns": self._num_turns}
            info = {**info, "episode_stats": stats}
        return obs, reward, terminated, truncated, info


@register_env("measured")
def measured(**kwargs):
    return Measured(gym.make("CartPole-v1", **kwargs))


if __name__ == "__main__":
    main(env="measured", config="fast", train_for_env_steps=100_000)
