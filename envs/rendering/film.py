"""What makes a group one that can be looked at: a film of each view, and cameras that shoot them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sf.envs.group import EnvGroup, Episode, ObsRows, StepResult


class Film:
    """The pictures of one view. The first picture of an episode is kept until its first step."""

    def __init__(self) -> None:
        self._beginning: list[np.ndarray] = []
        self._pictures: list[np.ndarray] = []

    def begin(self, picture: np.ndarray) -> None:
        """An episode begins with this picture."""
        self._pictures += self._beginning  # of an episode that had no step
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
