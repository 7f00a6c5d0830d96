"""MiniGrid's mazes of two to six rooms as 4,000 levels: 3,000 to train on, and 1,000 to evaluate on.

    sf-train --env minigrid_levels:Rooms --env_options '{"level": [0, 2999]}' --level_choice plr \
        --train_for_env_steps 5000000
    sf-eval Rooms --override env_options='{"level": [3000, 3999]}'

A level is the seed of a maze. The agent opens the doors on its way to the goal, and sees the 7x7 cells in front of it.
It needs minigrid.
"""

import gymnasium as gym
from minigrid.envs import MultiRoomEnv
from minigrid.wrappers import ImgObsWrapper


class Rooms(gym.Wrapper):
    levels = 4_000

    def __init__(self, render_mode=None):
        rooms = MultiRoomEnv(minNumRooms=2, maxNumRooms=6, maxRoomSize=6, render_mode=render_mode)
        super().__init__(ImgObsWrapper(rooms))
        self._level = 0

    def set_options(self, values):
        self._level = values["level"]

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=self._level)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info["episode_stats"] = {"success": float(reward > 0)}
        return obs, reward, terminated, truncated, info
