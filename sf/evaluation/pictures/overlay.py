"""The picture on the screen: panels side by side, each with a caption above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from sf.system.machine.extras import how_to_install

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

CAPTION_HEIGHT = 38  # two lines
FONT_SIZE = 13
_MIN_WIDTH = 260  # of a panel: for the text
_GAP = 4  # between panels
_MAX_HEIGHT = 480  # to which small pictures are enlarged
BACKGROUND, TITLE, TEXT = (24, 24, 27), (255, 255, 255), (190, 190, 200)


@dataclass(frozen=True)
class Panel:
    """Holds what a view shows. result: lines over the last picture of an environment that has played its matches."""

    picture: np.ndarray  # [H, W, 3] uint8
    title: str
    text: str
    result: tuple[str, ...] = ()


class Grid:
    """Places panels as large as fits, those of one environment in one row if possible. size: width and height, even."""

    def __init__(self, num_panels: int, num_views: int, picture: tuple[int, int], limit: tuple[int, int]) -> None:
        """num_views: panels of an environment. picture: its height and width. Raises ValueError without Pillow."""
        if find_spec("PIL") is None:
            raise ValueError(f"text on pictures needs Pillow: {how_to_install('video')}")
        height, width = picture
        choices = []
        for columns in range(num_views, num_panels + num_views, num_views):
            rows = -(-num_panels // columns)
            room_w, room_h = _even(limit[0] / columns) - _GAP, _even(limit[1] / rows) - CAPTION_HEIGHT - _GAP
            scale = min(room_w / width, room_h / height)
            scale = min(scale, max(1.0, _MAX_HEIGHT // height))
            legible = min(room_w / _MIN_WIDTH, 1.0)
            empty = columns * rows - num_panels
            choices.append((scale * legible, -empty, -abs(columns - rows), columns, scale))
        *_, self._columns, scale = max(choices)
        scale = max(int(scale), 1) if scale >= 1 else scale  # whole pixels stay sharp
        self._shown = (max(1, int(width * scale)), max(1, int(height * scale)))  # width, height
        panel_w = max(self._shown[0], min(_MIN_WIDTH, _even(limit[0] / self._columns) - _GAP)) + _GAP
        panel_h = CAPTION_HEIGHT + self._shown[1] + _GAP
        self._panel = (panel_w + panel_w % 2, panel_h + panel_h % 2)
        rows = -(-num_panels // self._columns)
        self.size = (self._panel[0] * self._columns, self._panel[1] * rows)

    def draw(self, panels: Sequence[Panel]) -> np.ndarray:
        """[H, W, 3] uint8."""
        canvas = np.empty((self.size[1], self.size[0], 3), np.uint8)
        canvas[:] = BACKGROUND
        width, height = self._panel
        for i, panel in enumerate(panels):
            row, column = divmod(i, self._columns)
            place = canvas[row * height : (row + 1) * height, column * width : (column + 1) * width]
            place[:CAPTION_HEIGHT] = _caption(panel.title, panel.text, width)
            shown = self._scaled(panel.picture)
            if panel.result:
                shown = _with_result(shown, panel.result)
            left = (width - self._shown[0]) // 2
            place[CAPTION_HEIGHT : CAPTION_HEIGHT + self._shown[1], left : left + self._shown[0]] = shown
        return canvas

    def _scaled(self, picture: np.ndarray) -> np.ndarray:
        from PIL import Image  # noqa: PLC0415  an extra

        width, height = self._shown
        if picture.shape[:2] == (height, width):
            return picture
        enlarged = picture.shape[0] <= height
        how = Image.Resampling.NEAREST if enlarged else Image.Resampling.BOX
        return np.asarray(Image.fromarray(picture).resize((width, height), how))


def _even(room: float) -> int:
    """Rounds down to an even number of pixels, so that a panel whose sides are made even still fits."""
    return int(room) // 2 * 2


@lru_cache(maxsize=256)
def _caption(title: str, text: str, width: int) -> np.ndarray:
    """[CAPTION_HEIGHT, width, 3] uint8."""
    from PIL import Image, ImageDraw  # noqa: PLC0415

    image = Image.new("RGB", (width, CAPTION_HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(image)
    for line, colour, top in ((title, TITLE, 3), (text, TEXT, 20)):
        draw.text((6, top), fitting(line, width - 12), fill=colour, font=font(FONT_SIZE))
    return np.asarray(image)


def _with_result(picture: np.ndarray, lines: Sequence[str]) -> np.ndarray:
    """The picture darkened, with the lines in its middle."""
    from PIL import Image, ImageDraw  # noqa: PLC0415

    image = Image.fromarray(picture // 3)
    draw: Any = ImageDraw.Draw(image)
    centre = (image.width / 2, image.height / 2)
    draw.multiline_text(centre, "\n".join(lines), fill=TITLE, font=font(18), anchor="mm", align="center")
    return np.asarray(image)


def fitting(text: str, width: int) -> str:
    """The text, or as much of it as fits into this many pixels."""
    while text and font(FONT_SIZE).getlength(text) > width:
        text = f"{text[:-2]}…" if len(text) > 2 else ""
    return text


@lru_cache
def font(size: int) -> FreeTypeFont | ImageFont:
    from PIL import ImageFont  # noqa: PLC0415

    return ImageFont.load_default(size)
