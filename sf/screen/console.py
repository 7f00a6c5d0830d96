"""The screen of a person who plays: the picture in a window, and beside it the legend of the keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sf.screen import legend
from sf.screen.legend import Line
from sf.screen.overlay import BACKGROUND
from sf.screen.window import Window

_FOOTER = ("tab: pause    esc: end",)


class Console:
    """A `sf.screen.projector.Screen` around a window.

    num_lines: the most keys that there will be, known before it opens. lines: the keys, as they are drawn with the next
    picture. said: what the person is told, "" for nothing.
    """

    is_full = False
    max_fps = Window.max_fps

    def __init__(self, window: Window) -> None:
        self._window = window
        self.limit = (window.limit[0] - legend.WIDTH, window.limit[1])
        self.num_lines = 0
        self.lines: tuple[Line, ...] = ()
        self.said = ""
        self._picture = np.zeros((0, 0, 3), np.uint8)

    def open(self, size: tuple[int, int], fps: float, title: str) -> None:
        width, height = size
        self._height = max(height, min(legend.height_for(self.num_lines), self._window.limit[1]))
        self._window.open((width + legend.WIDTH, self._height), fps, title)

    def show(self, picture: np.ndarray) -> bool:
        self._picture = picture
        return self._window.show(self._with_legend())

    def wait_for(self, came: Callable[[], bool]) -> bool:
        """Show the picture as it is until something has come. Returns False when the user has closed the window."""
        return self._window.wait_for(came, self._with_legend())

    def finish(self) -> bool:
        return self._window.finish()

    def close(self) -> None:
        self._window.close()

    def _with_legend(self) -> np.ndarray:
        height, width, _ = self._picture.shape
        canvas = np.empty((self._height, width + legend.WIDTH, 3), np.uint8)
        canvas[height:, :width] = BACKGROUND
        canvas[:height, :width] = self._picture
        canvas[:, width:] = legend.draw_legend(self.lines, _FOOTER, self.said, self._height)
        return canvas
