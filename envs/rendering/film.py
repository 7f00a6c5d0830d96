"""Makes a group one that can be looked at: a film of each view, and cameras that shoot them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from sf.envs.added.episode_options import ScheduledGroup
from sf.envs.group import EnvGroup, Episode, ForwardModel, ObsRows, SearchableGroup, StepResult


class Film:
    """The pictures of one view. The first picture of an episode is kept until its first step."""

    def __init__(self) -> None:
        self._beginning: list[np.ndarray] = []
        self._pictures: list[np.ndarray] = []
        self._latest: np.ndarray | None = None

    def begin(self, picture: np.ndarray) -> None:
        """An episode begins with this picture."""
        self._pictures += self._beginning  # of an episode that had no step
        self._beginning = [picture]
        self._latest = picture

    def add(self, picture: np.ndarray) -> None:
        """The episode has gone on to this picture."""
        self._pictures += [*self._beginning, picture]
        self._beginning = []
        self._latest = picture

    def replace(self, picture: np.ndarray) -> None:
        """The newest picture is this one instead."""
        self._latest = picture
        if self._beginning:
            self._beginning = [picture]
        elif self._pictures:
            self._pictures[-1] = picture

    @property
    def latest(self) -> np.ndarray:
        """Returns the newest picture, also where its episode has had no step."""
        assert self._latest is not None, "nothing was filmed"
        return self._latest

    def cut(self) -> list[np.ndarray]:
        """Returns what was added since the last call."""
        pictures, self._pictures = self._pictures, []
        return pictures


class Camera(Protocol):
    """Films one or more environments."""

    @property
    def films(self) -> Sequence[Film]:
        """Returns the film of each view."""
        ...

    def returns(self) -> Sequence[float]:
        """Returns the return of each agent in the present episode."""
        ...

    # One that films a single environment may have methods `moves(agent_idx)` and `show_to(agent_idx)`: see
    # `sf.envs.group.PlayedGroup`.


class FilmedGroup:
    """A `PlayedGroup`: a group and the cameras of its environments."""

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

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        cast("ScheduledGroup", self._group).set_options(env_idx, values)

    def forward_model(self, seed: int) -> ForwardModel:
        return cast("SearchableGroup", self._group).forward_model(seed)

    def game(self, env_idx: int) -> Any:
        return cast("SearchableGroup", self._group).game(env_idx)

    def close(self) -> None:
        self._group.close()

    def pictures(self) -> list[list[np.ndarray]]:
        return [film.cut() for film in self._films]

    def present(self) -> list[np.ndarray]:
        return [film.latest for film in self._films]

    def moves(self, actor_idx: int) -> Mapping[int, str]:
        moves, agent_idx = self._of_camera("moves", actor_idx)
        return {} if moves is None else moves(agent_idx)

    def show_to(self, actor_idx: int) -> None:
        show_to, agent_idx = self._of_camera("show_to", actor_idx)
        if show_to is not None:
            show_to(agent_idx)

    def returns(self) -> list[float]:
        return [float(episode_return) for camera in self._cameras for episode_return in camera.returns()]

    def _of_camera(self, method: str, actor_idx: int) -> tuple[Callable[[int], Any] | None, int]:
        """The method of the camera that films this actor's match alone, if it has it; and the agent in the match."""
        env_idx, agent_idx = divmod(actor_idx, self.spec.num_agents)
        has_own = len(self._cameras) * self.spec.num_agents == self.num_actors
        return getattr(self._cameras[env_idx], method, None) if has_own else None, agent_idx
