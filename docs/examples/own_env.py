"""An environment of one's own, with Dict observations and a continuous action.

python own_env.py                                                 # takes every flag of sf-train
sf-train --env own_env:Reach --train_for_env_steps 100000         # the same, without the last lines
"""

import gymnasium as gym
import numpy as np

from sf import main
from sf.envs import register_env


@register_env("reach")
class Reach(gym.Env):
    """Push a point to a place in a square, within 50 steps."""

    observation_space = gym.spaces.Dict(
        point=gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
        goal=gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
    )
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, speed: float = 0.1) -> None:  # from --env_kwargs '{"speed": 0.2}'
        self._speed = speed

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._point, self._goal = self.np_random.uniform(-1, 1, (2, 2)).astype(np.float32)
        self._num_steps = 0
        return self._obs(), {}

    def step(self, action):
        self._point = np.clip(self._point + self._speed * action, -1, 1, dtype=np.float32)
        self._num_steps += 1
        distance = float(np.linalg.norm(self._goal - self._point))
        terminated = distance < 0.1  # it is there
        truncated = self._num_steps == 50 and not terminated  # time is up, though the game would go on
        info = {"episode_stats": {"arrived": float(terminated)}} if terminated or truncated else {}
        return self._obs(), -0.1 * distance, terminated, truncated, info

    def _obs(self):
        return {"point": self._point.copy(), "goal": self._goal}


if __name__ == "__main__":  # worker processes import this file again
    main(env="reach", train_for_env_steps=50_000, batch_size=512, num_epochs=4, learning_rate=1e-3)
