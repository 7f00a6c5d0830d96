"""Films Atari games in full colour, at every frame, while the policy sees small grey ones at every fourth.

ALE's vector environment shows only the frames that it was asked for. So each game has a twin with the same seed and the
same actions, which is therefore the same game. The twin draws each frame as the console did.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ale_py.vector_env import AtariVectorEnv

from sf.envs.rendering.film import Film

FRAMES_PER_S = 60.0
_SCREEN = {"stack_num": 1, "grayscale": False, "img_height": 210, "img_width": 160, "maxpool": False, "frameskip": 1}


class AtariCamera:
    """Stands in for the `AtariVectorEnv` of a group."""

    def __init__(self, game: str, num_envs: int, **kwargs: Any) -> None:
        """kwargs: of the games that are played."""
        self._env = AtariVectorEnv(game, num_envs, **kwargs)
        self._twins = [AtariVectorEnv(game, 1, **{**kwargs, **_SCREEN}) for _ in range(num_envs)]
        self._frameskip = kwargs["frameskip"]
        self._ended = np.zeros(num_envs, bool)  # the next step resets them
        self._latest = [np.zeros((210, 160, 3), np.uint8)] * num_envs
        self.num_envs = num_envs
        self.single_observation_space = self._env.single_observation_space
        self.single_action_space = self._env.single_action_space
        self.ale = self._env.ale
        self.films = [Film() for _ in range(num_envs)]
        self._returns = np.zeros(num_envs)

    def reset(self, *, seed: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        self._returns[:] = 0.0
        self._ended[:] = False
        for n, twin in enumerate(self._twins):
            screens, _ = twin.reset(seed=seed[n : n + 1])
            self._begin(n, screens)
        return self._env.reset(seed=seed)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        frames, points, terminated, truncated, info = self._env.step(actions)
        for n, twin in enumerate(self._twins):
            if self._ended[n]:
                screens, *_ = twin.step(actions[n : n + 1])
                self._begin(n, screens)
            else:
                same = self._play(n, actions[n : n + 1])
                assert same == (points[n], terminated[n], truncated[n]), "the twin plays another game"
                self._returns[n] += points[n]
        self._ended = terminated | truncated
        self._returns[self._ended] = 0.0
        return frames, points, terminated, truncated, info

    def returns(self) -> list[float]:
        return self._returns.tolist()

    def close(self) -> None:
        self._env.close()
        for twin in self._twins:
            twin.close()
        del self._env, self._twins, self.ale  # frees the emulators and ends their threads

    def _begin(self, n: int, screens: np.ndarray) -> None:
        self._latest[n] = screens[0, 0].copy()
        self.films[n].begin(self._latest[n])

    def _play(self, n: int, action: np.ndarray) -> tuple[float, bool, bool]:
        """Returns points, terminated and truncated."""
        total = 0.0
        for _ in range(self._frameskip):
            screens, points, terminated, truncated, _ = self._twins[n].step(action)
            total += points[0]
            screen = screens[0, 0].copy()
            # Some things are drawn on every second frame only: on a television they do not flicker.
            self.films[n].add(np.maximum(screen, self._latest[n]))
            self._latest[n] = screen
            if terminated[0] or truncated[0]:
                break
        return total, terminated[0], truncated[0]
