"""An environment as a user writes one: `--env reach:Reach` in the folder of this file."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np


class Reach(gym.Env):
    """Move a point in the plane to a goal that stands still; 16 steps.

    A step takes `pace_s` seconds, in which it does nothing. `trigger` is the path of a file: the one step that finds it
    removes it and fails, in the way that is its text.
    """

    observation_space = gym.spaces.Dict(
        position=gym.spaces.Box(-2.0, 2.0, (2,), np.float32), goal=gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    )
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, pace_s: float = 0.0, trigger: str | None = None) -> None:
        self._pace_s = pace_s
        self._trigger = None if trigger is None else Path(trigger)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        super().reset(seed=seed)
        self._num_steps = 0
        self._position = np.zeros(2, np.float32)
        self._goal = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return self._obs(), {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        time.sleep(self._pace_s)
        self._num_steps += 1
        self._position = np.clip(self._position + 0.2 * np.clip(action, -1.0, 1.0), -2.0, 2.0).astype(np.float32)
        distance = float(np.linalg.norm(self._goal - self._position))
        reward, obs = -distance, self._obs()
        asked_for = self._asked_for()
        if asked_for == "raise":
            raise RuntimeError("reach was asked to fail")
        if asked_for == "nan_reward":
            reward = float("nan")
        if asked_for == "nan_obs":
            obs["goal"] = np.full(2, np.nan, np.float32)
        if asked_for == "wrong_shape":
            obs["goal"] = obs["goal"][:1]
        return obs, reward, False, self._num_steps == 16, {}

    def _asked_for(self) -> str | None:
        """Many may see the file; the one that can rename it has it. Not the last step: nobody would see its end."""
        if self._trigger is None or self._num_steps == 16 or not self._trigger.exists():
            return None
        own = self._trigger.with_name(f"{self._trigger.name}.{os.getpid()}")
        with suppress(FileNotFoundError):
            self._trigger.rename(own)
            text = own.read_text()
            own.unlink()
            return text
        return None

    def _obs(self) -> dict[str, np.ndarray]:
        return {"position": self._position.copy(), "goal": self._goal}
