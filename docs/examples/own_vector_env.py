"""Many environments stepped by one array operation.

python own_vector_env.py
sf-train --env own_vector_env:ManyCarts --num_envs_per_worker 512
"""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sf import main
from sf.envs import register_vector_env


@register_vector_env("many_carts")
class ManyCarts(VectorEnv):
    """Carts on a line: push left or right to stay near the middle. It says how it resets in `metadata`."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  as Gymnasium has it
    single_observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    single_action_space = gym.spaces.Discrete(2)

    def __init__(self, num_envs: int, max_steps: int = 100) -> None:
        self.num_envs = num_envs  # half of --num_envs_per_worker: a worker has two groups
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._max_steps = max_steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state = self._first_states()  # [E, 2]: position, speed
        self._num_steps = np.zeros(self.num_envs, int)
        self._ended = np.zeros(self.num_envs, bool)
        return self._state, {}

    def step(self, actions):
        restarted = self._ended  # their actions are ignored, their rewards 0
        self._state[:, 1] += 0.02 * (2 * actions - 1) + self.np_random.normal(0, 0.02, self.num_envs)
        self._state[:, 0] += self._state[:, 1]
        self._state[restarted] = self._first_states()[restarted]
        self._num_steps = np.where(restarted, 0, self._num_steps + 1)
        distance = np.abs(self._state[:, 0])
        terminated = (distance > 2) & ~restarted
        truncated = (self._num_steps == self._max_steps) & ~terminated
        self._ended = terminated | truncated
        stats = {"final_distance": distance, "_final_distance": self._ended}
        return self._state, np.where(restarted, 0, 1 - distance), terminated, truncated, {"episode_stats": stats}

    def _first_states(self):
        return self.np_random.uniform(-0.5, 0.5, (self.num_envs, 2)).astype(np.float32) * [1.0, 0.1]


if __name__ == "__main__":
    main(env="many_carts", num_envs_per_worker=128, batch_size=4096, num_epochs=4, train_for_env_steps=1_000_000)
