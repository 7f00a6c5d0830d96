"""Cameras of environments. Each stands between a group and its environments, and keeps what they draw."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from sf.envs.errors import UsageError
from sf.envs.groups import calls
from sf.envs.groups.parallel import ParallelEnv
from sf.envs.rendering.film import Film
from sf.envs.rendering.pictures import ObsPainter

RENDER_MODE = "rgb_array"

_ByAgent = Mapping[Any, Any]


class EnvCamera(gym.Wrapper):
    """Films a Gymnasium environment: what it renders, or its observations."""

    def __init__(self, env_id: str, env: gym.Env) -> None:
        super().__init__(env)
        self._env_id = env_id
        self._painter = None if env.render_mode == RENDER_MODE else ObsPainter(env_id, env.observation_space)
        self.films = [Film()]
        self._returns = [0.0]

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        self._returns[0] = 0.0
        self.films[0].begin(self._draw(obs))
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = calls.step(self._env_id, self.env, action)
        self._returns[0] += calls.reward(self._env_id, reward)
        self.films[0].add(self._draw(obs))
        return obs, reward, terminated, truncated, info

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copies the environment alone: nobody looks at what a search does."""
        return copy.deepcopy(self.env, memo)

    def returns(self) -> Sequence[float]:
        return self._returns

    def _draw(self, obs: Any) -> np.ndarray:
        return _rendered(self._env_id, self.env.render) if self._painter is None else self._painter.draw(obs)


class VectorCamera(VectorWrapper):
    """Films the environments of a vector environment: what they render, or their observations."""

    def __init__(self, env_id: str, env: VectorEnv) -> None:
        super().__init__(env)
        self._env_id = env_id
        self._painter = None if env.render_mode == RENDER_MODE else ObsPainter(env_id, env.single_observation_space)
        self.films = [Film() for _ in range(env.num_envs)]
        self._returns = np.zeros(env.num_envs)
        self._ended = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        which = np.ones(self.num_envs, bool) if options is None else options["reset_mask"]
        obs, info = self.env.reset(seed=seed, options=options)  # which may take the mask out of `options`
        self._film(obs, begins=which, plays=np.zeros(self.num_envs, bool))
        return obs, info

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        obs, reward, terminated, truncated, info = calls.step(self._env_id, self.env, actions)
        ended = np.logical_or(terminated, truncated)
        mode = self.env.metadata.get("autoreset_mode")
        begins = np.zeros_like(ended)
        if mode is AutoresetMode.NEXT_STEP:
            begins = self._ended
        elif mode is AutoresetMode.SAME_STEP:
            begins = ended  # what the episode ended with was never rendered
        self._ended = ended
        with suppress(TypeError, ValueError):  # the group says what is wrong with it
            self._returns += reward
        self._film(obs, begins, plays=~begins)
        return obs, reward, terminated, truncated, info

    def returns(self) -> Sequence[float]:
        return self._returns.tolist()

    def _film(self, obs: Any, begins: np.ndarray, plays: np.ndarray) -> None:
        self._returns[begins] = 0.0
        pictures = self._draw(obs)
        for n in np.flatnonzero(begins):
            self.films[n].begin(pictures[n])
        for n in np.flatnonzero(plays):
            self.films[n].add(pictures[n])

    def _draw(self, obs: Any) -> list[np.ndarray]:
        if self._painter is not None:
            return [self._painter.draw(one) for one in gym.vector.utils.iterate(self.env.observation_space, obs)]
        frames: Any = self.env.render()
        return [_rendered(self._env_id, partial(np.asarray, frame)) for frame in frames]


class MatchCamera:
    """Films a match: the picture that it renders, or what each of its agents observes."""

    def __init__(self, env_id: str, env: ParallelEnv) -> None:
        self._env_id = env_id
        self._env = env
        self._idxs = {agent: a for a, agent in enumerate(env.possible_agents)}
        self._painter = None
        if getattr(env, "render_mode", None) != RENDER_MODE:
            self._painter = ObsPainter(env_id, env.observation_space(env.possible_agents[0]))
        self.films = [Film() for _ in (self._idxs if self._painter else range(1))]
        self._returns = [0.0] * len(self._idxs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, seed: int | None = None) -> tuple[_ByAgent, _ByAgent]:
        obs, infos = self._env.reset(seed=seed)
        self._returns = [0.0] * len(self._idxs)
        for film, picture in self._draw(obs):
            film.begin(picture)
        return obs, infos

    def step(self, actions: dict[Any, Any]) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        obs, rewards, terminations, truncations, infos = calls.step(self._env_id, self._env, actions)
        for agent, a in self._idxs.items():
            if agent in actions:
                with suppress(LookupError, TypeError):  # the group says which reward is missing
                    self._returns[a] += calls.reward(self._env_id, rewards[agent])
            elif agent in self._env.agents:  # it has come back
                self._returns[a] = 0.0
        for film, picture in self._draw(obs):
            film.add(picture)
        return obs, rewards, terminations, truncations, infos

    def returns(self) -> Sequence[float]:
        return self._returns

    def _draw(self, obs: _ByAgent) -> list[tuple[Film, np.ndarray]]:
        if self._painter is None:
            return [(self.films[0], _rendered(self._env_id, self._env.render))]  # type: ignore[attr-defined]
        return [(self.films[a], self._painter.draw(obs[agent])) for agent, a in self._idxs.items() if agent in obs]


def _rendered(env_id: str, render: Callable[[], Any]) -> np.ndarray:
    """Returns a copy of what it rendered. Raises UsageError where that is no picture, or a library is missing."""
    try:
        picture = np.array(render())
    except gym.error.DependencyNotInstalled as error:
        raise UsageError(f"{env_id} cannot be drawn: {error}") from error
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or not picture.size:
        raise UsageError(
            f"{env_id}: render() returned {picture.dtype} of shape {picture.shape}: with render_mode 'rgb_array' it "
            "returns a picture, uint8 of shape (height, width, 3)"
        )
    return picture
