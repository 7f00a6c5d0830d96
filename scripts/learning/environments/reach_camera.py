"""A task from pixels with continuous actions, for the bench of what trainers learn."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

SIDE = 64  # pixels
THING = 6  # pixels, the side of what is to be seen
SPEED = 0.15  # of the table's half width


class Reach(gym.Env):
    """A camera above a table: move the white hand to the red ball. Each of 40 steps costs the distance between them.

    A good policy is there after about five steps: its returns are about -4, those of one that stands still -42.
    """

    NUM_STEPS: ClassVar[int] = 40
    observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._hand, self._ball = self.np_random.uniform(-1, 1, (2, 2))
        self._num_steps = 0
        return self._picture(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._hand = np.clip(self._hand + SPEED * np.asarray(action), -1, 1)
        self._num_steps += 1
        distance = float(np.linalg.norm(self._hand - self._ball))
        return self._picture(), -distance, False, self._num_steps == self.NUM_STEPS, {}

    def _picture(self) -> np.ndarray:
        picture = np.zeros((SIDE, SIDE, 3), np.uint8)
        for place, color in ((self._ball, (255, 0, 0)), (self._hand, (255, 255, 255))):
            column, row = ((place + 1) / 2 * (SIDE - THING)).astype(int)
            picture[row : row + THING, column : column + THING] = color
        return picture
