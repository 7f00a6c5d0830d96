"""Moments of play as pictures on a screen, as many a second as there are in real time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from sf.evaluation.pictures.overlay import Grid, Panel


class Screen(Protocol):
    """Where pictures are shown: `sf.tools.commands.play.window`, `sf.evaluation.pictures.video`."""

    limit: tuple[int, int]  # width and height that fit
    max_fps: float
    is_full: bool  # of a file that has become as long as it may

    def open(self, size: tuple[int, int], fps: float, title: str) -> None: ...

    def show(self, picture: np.ndarray) -> bool:
        """Returns whether to go on."""
        ...

    def finish(self) -> bool:
        """Returns whether it leaves a file."""
        ...

    def close(self) -> None: ...


class Projector:
    """Leaves out moments, or repeats pictures, where the screen has fewer or more pictures a second than moments.

    seconds, size: of what was shown so far; the size is width and height.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        moments_per_s: float,
        fps: float,
        num_views: int,
        limit: tuple[int, int],
        title: str,
        goes_on: Callable[[], bool],
    ) -> None:
        """num_views: of an environment. limit: of width and height. goes_on: asked before each picture."""
        self._screen = screen
        self._fps = fps
        self._pictures_per_moment = fps / moments_per_s
        self._due = 0.0
        self._num_views = num_views
        self._limit = limit
        self._title = title
        self._goes_on = goes_on
        self._grid: Grid | None = None
        self._num_pictures = 0

    @property
    def seconds(self) -> float:
        return self._num_pictures / self._fps

    @property
    def size(self) -> tuple[int, int]:
        assert self._grid is not None, "nothing was shown"
        return self._grid.size

    def show(self, panels: Sequence[Panel]) -> bool:
        """Returns whether to go on."""
        self._due += self._pictures_per_moment
        num_due = int(self._due + 1e-9)
        self._due -= num_due
        return self._show(panels, num_due)

    def hold(self, panels: Sequence[Panel], seconds: float) -> None:
        """Leave time to read what is there."""
        self._show(panels, max(1, round(seconds * self._fps)))

    def _show(self, panels: Sequence[Panel], num_pictures: int) -> bool:
        if num_pictures == 0:
            return True
        if self._grid is None:
            height, width, _ = panels[0].picture.shape
            self._grid = Grid(len(panels), self._num_views, (height, width), self._limit)
            self._screen.open(self._grid.size, self._fps, self._title)
        picture = self._grid.draw(panels)
        for _ in range(num_pictures):
            if not self._goes_on():
                return False
            self._num_pictures += 1
            if not self._screen.show(picture):
                return False
        return True
