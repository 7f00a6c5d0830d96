"""The screen of a person who plays: the picture in a window, and beside it the legend of the keys."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sf.evaluation.pictures.overlay import BACKGROUND, FONT_SIZE, TEXT, TITLE, fitting, font
from sf.tools.commands.play.window import Window

LEGEND_WIDTH = 340  # pixels
_LINE = 17  # pixels
_NAMES_AT = 170  # where names begin
_CHOSEN, _FORBIDDEN, _SAID = (120, 220, 120), (90, 90, 96), (250, 200, 90)
_MAX_LETTERS = 42  # in a line of what is said
_NUM_SAID = 3  # lines for that


class Line(NamedTuple):
    """A choice of a head, with its keys in words."""

    keys: str
    name: str
    is_allowed: bool = True
    is_chosen: bool = False


def height_for(num_lines: int) -> int:
    """In pixels, of a column with this many lines."""
    return (num_lines + _NUM_SAID + 4) * _LINE


@lru_cache(maxsize=64)
def draw_legend(lines: Sequence[Line], footer: Sequence[str], said: str, height: int) -> np.ndarray:
    """[height, LEGEND_WIDTH, 3] uint8. lines, footer: tuples. What there is no room for is left out, the last lines
    first."""
    from PIL import Image, ImageDraw  # noqa: PLC0415  an extra

    image = Image.new("RGB", (LEGEND_WIDTH, height), BACKGROUND)
    draw = ImageDraw.Draw(image)
    for n, part in enumerate(textwrap.wrap(said, _MAX_LETTERS)[:_NUM_SAID]):
        draw.text((8, 4 + n * _LINE), part, fill=_SAID, font=font(FONT_SIZE))
    top = 4 + (_NUM_SAID + 1) * _LINE
    bottom = height - (len(footer) + 1) * _LINE
    room = max(0, (bottom - top) // _LINE)
    for n, line in enumerate(lines[:room]):
        colour = _FORBIDDEN if not line.is_allowed else _CHOSEN if line.is_chosen else TITLE
        y = top + n * _LINE
        draw.text((8, y), fitting(line.keys, _NAMES_AT - 16), fill=colour, font=font(FONT_SIZE))
        draw.text((_NAMES_AT, y), fitting(line.name, LEGEND_WIDTH - _NAMES_AT - 8), fill=colour, font=font(FONT_SIZE))
    for n, text in enumerate(footer):
        draw.text((8, bottom + n * _LINE), text, fill=TEXT, font=font(FONT_SIZE))
    return np.asarray(image)


_FOOTER = ("tab: pause    esc: end",)


class Console:
    """A `sf.evaluation.pictures.stage.Screen` around a window.

    num_lines: the most keys that there will be, known before it opens. lines: the keys, as they are drawn with the next
    picture. said: what the person is told, "" for nothing.
    """

    is_full = False
    max_fps = Window.max_fps

    def __init__(self, window: Window) -> None:
        self._window = window
        self.limit = (window.limit[0] - LEGEND_WIDTH, window.limit[1])
        self.num_lines = 0
        self.lines: tuple[Line, ...] = ()
        self.said = ""
        self._picture = np.zeros((0, 0, 3), np.uint8)

    def open(self, size: tuple[int, int], fps: float, title: str) -> None:
        width, height = size
        self._height = max(height, min(height_for(self.num_lines), self._window.limit[1]))
        self._window.open((width + LEGEND_WIDTH, self._height), fps, title)

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
        canvas = np.empty((self._height, width + LEGEND_WIDTH, 3), np.uint8)
        canvas[height:, :width] = BACKGROUND
        canvas[:height, :width] = self._picture
        canvas[:, width:] = draw_legend(self.lines, _FOOTER, self.said, self._height)
        return canvas
