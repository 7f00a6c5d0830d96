"""A task from a small picture, a few numbers and a mask, for the bench of what trainers learn."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

CELLS = 8  # a side
PIXELS = 4  # a side of a cell
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])


class Fetch(gym.Env):
    """A white robot among two boxes: the red one pays 1, the blue one -1, and either ends the episode.

    Each step costs 0.01, and an episode has at most 50. A move into a wall is masked. Random moves get -0.4, and a good
    policy 0.95.
    """

    NUM_STEPS: ClassVar[int] = 50
    observation_space = gym.spaces.Dict(
        {
            "image": gym.spaces.Box(0, 255, (CELLS * PIXELS, CELLS * PIXELS, 3), np.uint8),
            "numbers": gym.spaces.Box(-1.0, 1.0, (4,), np.float32),
            "action_mask": gym.spaces.Box(0, 1, (len(MOVES),), np.int8),
        }
    )
    action_space = gym.spaces.Discrete(len(MOVES))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        cells = self.np_random.choice(CELLS**2, 3, replace=False)
        self._robot, self._red, self._blue = np.transpose(np.divmod(cells, CELLS))
        self._num_steps, self._move = 0, MOVES[0]
        return self._observation(), {}

    def step(self, action: int) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        self._move = MOVES[action]
        self._robot = self._robot + self._move
        self._num_steps += 1
        is_red, is_blue = (bool((self._robot == box).all()) for box in (self._red, self._blue))
        reward = -0.01 + is_red - is_blue
        return self._observation(), reward, is_red or is_blue, self._num_steps == self.NUM_STEPS, {}

    def _observation(self) -> dict[str, np.ndarray]:
        picture = np.full((CELLS * PIXELS, CELLS * PIXELS, 3), 30, np.uint8)
        for cell, color in ((self._red, (200, 40, 40)), (self._blue, (40, 40, 200)), (self._robot, (240, 240, 240))):
            row, column = cell * PIXELS
            picture[row : row + PIXELS, column : column + PIXELS] = color
        place = self._robot / (CELLS - 1) * 2 - 1
        fits = ((self._robot + MOVES >= 0) & (self._robot + MOVES < CELLS)).all(1)
        numbers = np.concatenate((place, self._move)).astype(np.float32)
        return {"image": picture, "numbers": numbers, "action_mask": fits.astype(np.int8)}
