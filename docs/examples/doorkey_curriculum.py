"""MiniGrid's DoorKey, whose size an option of each episode says: a curriculum from 5x5 to 16x16.

    sf-train --env doorkey_curriculum:DoorKey --anneal env.size=5:16@success:0.9 --train_for_env_steps 3000000
    sf-eval DoorKey                                     # at 16x16, the last value

The agent sees the 7x7 cells in front of it, whatever the size, so the spaces stay the same. It needs minigrid.
"""

import gymnasium as gym
from minigrid.envs import DoorKeyEnv
from minigrid.wrappers import ImgObsWrapper

LARGEST = 16


class DoorKey(gym.Env):
    """An environment is made for each size that is asked for, and kept."""

    schedulable = {"size": (5, LARGEST)}  # noqa: RUF012  as Gymnasium declares metadata

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self._sized = {}
        self.set_options({"size": LARGEST})
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space
        self.metadata = self._env.metadata

    def set_options(self, values):
        size = values["size"]
        if size not in self._sized:
            self._sized[size] = ImgObsWrapper(DoorKeyEnv(size=size, render_mode=self.render_mode))
        self._env = self._sized[size]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._env.reset(seed=int(self.np_random.integers(2**31)))

    def step(self, action):
        obs, reward, terminated, truncated, info = self._env.step(action)
        if terminated or truncated:
            info["episode_stats"] = {"success": float(reward > 0)}
        return obs, reward, terminated, truncated, info

    def render(self):
        return self._env.render()
