"""Level-based foraging, whose size an option of each episode says: a curriculum from 5x5 to 8x8.

    sf-train --env foraging_curriculum:Foraging --anneal env.size=5:8@mean_return:0.4 --critic all --share_reward all
    sf-eval Foraging                                    # at 8x8, the last value

Both agents have to load each food together, which random moves hardly ever do on a large board. The observation is a
list of places, so the spaces stay the same. It needs lbforaging.
"""

import gymnasium as gym
import lbforaging  # noqa: F401  which registers the environment
import numpy as np

LARGEST = 8


class Foraging(gym.Wrapper):
    """The environment of 8x8 cells, which makes a board as large as it is asked to at each reset."""

    schedulable = {"size": (5, LARGEST)}  # noqa: RUF012  as Gymnasium declares metadata

    def __init__(self, render_mode=None):
        super().__init__(gym.make("Foraging-8x8-2p-2f-coop-v3", render_mode=render_mode))

    def set_options(self, values):
        self.unwrapped.field = np.zeros((values["size"], values["size"]), np.int32)  # the next reset makes one like it
