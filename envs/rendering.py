"""Groups that can be looked at. Cameras stand between a group and its environments, and keep what these draw.

So the groups themselves, which training steps, know nothing of pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from sf.envs.errors import UsageError
from sf.envs.group import EnvGroup, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.gym_group import GymGroup
from sf.envs.obs_pictures import ObsPainter
from sf.envs.options import EnvOptions
from sf.envs.parallel_group import ParallelEnv, ParallelGroup
from sf.envs.turns import as_parallel
from sf.envs.vector_group import VectorGroup

PICTURES_PER_S = 10.0  # of environments that do not say how fast they are

_RENDER_MODE = "rgb_array"
_ByAgent = Mapping[Any, Any]


class Film:
    """The pictures of one view. What an episode begins with is kept for its first step."""

    def __init__(self) -> None:
        self._beginning: list[np.ndarray] = []
        self._pictures: list[np.ndarray] = []

    def begin(self, picture: np.ndarray) -> None:
        """An episode begins with this picture."""
        self._pictures += self._beginning  # all that there was to see of the one before
        self._beginning = [picture]

    def add(self, picture: np.ndarray) -> None:
        """The episode has gone on to this picture."""
        self._pictures += [*self._beginning, picture]
        self._beginning = []

    def cut(self) -> list[np.ndarray]:
        """What was added since the last call."""
        pictures, self._pictures = self._pictures, []
        return pictures


class Camera(Protocol):
    """Films one or more environments."""

    @property
    def films(self) -> Sequence[Film]:
        """Of each view."""
        ...

    def returns(self) -> Sequence[float]:
        """Of each agent, in the episode that is under way."""
        ...


class FilmedGroup:
    """A `RenderedGroup`: a group and the cameras of its environments."""

    def __init__(self, group: EnvGroup, cameras: Sequence[Camera], pictures_per_s: float) -> None:
        self._group = group
        self._cameras = cameras
        self.spec = group.spec
        self.num_actors = group.num_actors
        self.pictures_per_s = pictures_per_s
        self._films = [film for camera in cameras for film in camera.films]
        self.num_views = len(self._films) * group.spec.num_agents // group.num_actors

    def reset(self, obs: ObsRows) -> None:
        self._group.reset(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        return self._group.step(discrete, continuous, obs, result)

    def close(self) -> None:
        self._group.close()

    def pictures(self) -> list[list[np.ndarray]]:
        return [film.cut() for film in self._films]

    def returns(self) -> list[float]:
        return [float(episode_return) for camera in self._cameras for episode_return in camera.returns()]


class EnvCamera(gym.Wrapper):
    """Films a Gymnasium environment: what it renders, or its observations."""

    def __init__(self, env_id: str, env: gym.Env) -> None:
        super().__init__(env)
        self._env_id = env_id
        self._painter = None if env.render_mode == _RENDER_MODE else ObsPainter(env_id, env.observation_space)
        self.films = [Film()]
        self._returns = [0.0]

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        self._returns[0] = 0.0
        self.films[0].begin(self._draw(obs))
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._returns[0] += float(reward)
        self.films[0].add(self._draw(obs))
        return obs, reward, terminated, truncated, info

    def returns(self) -> Sequence[float]:
        return self._returns

    def _draw(self, obs: Any) -> np.ndarray:
        return _rendered(self._env_id, self.env.render) if self._painter is None else self._painter.draw(obs)


class VectorCamera(VectorWrapper):
    """Films the environments of a vector environment: what they render, or their observations."""

    def __init__(self, env_id: str, env: VectorEnv) -> None:
        super().__init__(env)
        self._env_id = env_id
        self._painter = None if env.render_mode == _RENDER_MODE else ObsPainter(env_id, env.single_observation_space)
        self.films = [Film() for _ in range(env.num_envs)]
        self._returns = np.zeros(env.num_envs)
        self._ended = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        which = np.ones(self.num_envs, bool) if options is None else options["reset_mask"]
        obs, info = self.env.reset(seed=seed, options=options)  # which may take the mask out of `options`
        self._film(obs, begins=which, plays=np.zeros(self.num_envs, bool))
        return obs, info

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(actions)
        ended = np.logical_or(terminated, truncated)
        mode = self.env.metadata.get("autoreset_mode")
        begins = np.zeros_like(ended)
        if mode is AutoresetMode.NEXT_STEP:
            begins = self._ended
        elif mode is AutoresetMode.SAME_STEP:
            begins = ended  # what the episode ended with was never rendered
        self._ended = ended
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
        if getattr(env, "render_mode", None) != _RENDER_MODE:
            self._painter = ObsPainter(env_id, env.observation_space(env.possible_agents[0]))
        self.films = [Film() for _ in (self._idxs if self._painter else range(1))]
        self._returns = [0.0] * len(self._idxs)

    @property
    def possible_agents(self) -> Sequence[Any]:
        return self._env.possible_agents

    @property
    def agents(self) -> Sequence[Any]:
        return self._env.agents

    def reset(self, seed: int | None = None) -> tuple[_ByAgent, _ByAgent]:
        obs, infos = self._env.reset(seed=seed)
        self._returns = [0.0] * len(self._idxs)
        for film, picture in self._draw(obs):
            film.begin(picture)
        return obs, infos

    def step(self, actions: dict[Any, Any]) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        obs, rewards, terminations, truncations, infos = self._env.step(actions)
        for agent, a in self._idxs.items():
            if agent in actions:
                self._returns[a] += float(rewards[agent])
            elif agent in self._env.agents:  # it has come back
                self._returns[a] = 0.0
        for film, picture in self._draw(obs):
            film.add(picture)
        return obs, rewards, terminations, truncations, infos

    def returns(self) -> Sequence[float]:
        return self._returns

    def observation_space(self, agent: Any) -> gym.Space:
        return self._env.observation_space(agent)

    def action_space(self, agent: Any) -> gym.Space:
        return self._env.action_space(agent)

    def close(self) -> None:
        self._env.close()

    def _draw(self, obs: _ByAgent) -> list[tuple[Film, np.ndarray]]:
        if self._painter is None:
            return [(self.films[0], _rendered(self._env_id, self._env.render))]  # type: ignore[attr-defined]
        return [(self.films[a], self._painter.draw(obs[agent])) for agent, a in self._idxs.items() if agent in obs]


def film_envs(
    env_id: str, make_envs: Sequence[Callable[..., gym.Env]], options: EnvOptions, seed: int, first_env_idx: int
) -> RenderedGroup:
    """make_envs: each makes an environment; called with a keyword `render_mode`, and without it where that fails."""
    cameras = [EnvCamera(env_id, _make_drawing(make)) for make in make_envs]
    group = GymGroup(env_id, cameras, seed, first_env_idx, options.env_frameskip or 1)
    return FilmedGroup(group, cameras, _pictures_per_s(cameras[0]))


def film_matches(
    env_id: str, make_envs: Sequence[Callable[..., ParallelEnv]], options: EnvOptions, seed: int, first_env_idx: int
) -> RenderedGroup:
    """As `film_envs`."""
    frameskip = options.env_frameskip or 1
    envs = [as_parallel(env_id, _make_drawing(make), frameskip) for make in make_envs]
    cameras = [MatchCamera(env_id, env) for env in envs]
    group = ParallelGroup(env_id, cameras, seed, first_env_idx, frameskip)
    return FilmedGroup(group, cameras, _pictures_per_s(envs[0]))


def film_vector(env_id: str, make_env: Callable[..., VectorEnv], seed: int, first_env_idx: int) -> RenderedGroup:
    """As `film_envs`, of a vector environment."""
    camera = VectorCamera(env_id, _make_drawing(make_env))
    return FilmedGroup(VectorGroup(env_id, camera, seed, first_env_idx), [camera], _pictures_per_s(camera))


def _make_drawing(make: Callable[..., Any]) -> Any:
    try:
        return make(render_mode=_RENDER_MODE)
    except (TypeError, ValueError, gym.error.Error):  # it knows no such mode; or it cannot be made, and says so again
        return make()


def _pictures_per_s(env: Any) -> float:
    return float((getattr(env, "metadata", None) or {}).get("render_fps") or PICTURES_PER_S)


def _rendered(env_id: str, render: Callable[[], Any]) -> np.ndarray:
    """A copy of what it rendered. Raises UsageError where that is no picture, or a library is missing."""
    try:
        picture = np.array(render())
    except gym.error.DependencyNotInstalled as error:
        raise UsageError(f"{env_id} cannot be drawn: {error}") from error
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
        raise UsageError(
            f"{env_id}: render() returned {picture.dtype} of shape {picture.shape}: with render_mode 'rgb_array' it "
            "returns a picture, uint8 of shape (height, width, 3)"
        )
    return picture
