"""Pictures of text, such as the positions of a game that draws none."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

import numpy as np

from sf.envs.errors import UsageError

_COLUMNS, _ROWS = 64, 30  # letters of a picture
_WIDTH, _HEIGHT = 10, 17  # pixels of a letter
_FONT_SIZE = 13
_COLOURS = re.compile(r"\x1b\[[\d;]*m")  # for terminals
_SUITS = str.maketrans("♠♥♦♣", "SHDC")  # which Pillow's font lacks


class TextPainter:
    """Draws text in letters of one width, so that a board stays one, on pictures of one size."""

    def __init__(self, env_id: str) -> None:
        """Raises UsageError where Pillow is missing."""
        try:
            import PIL  # noqa: F401, PLC0415  an extra
        except ImportError as error:
            raise UsageError(f"{env_id} cannot be drawn: {error}: pip install 'pillow>=10.1'") from error

    def draw(self, text: str) -> np.ndarray:
        """[H, W, 3] uint8 of as much as there is room for. Longer lines go on in the next one."""
        lines = [part for line in _COLOURS.sub("", text).translate(_SUITS).splitlines() for part in _parts(line)]
        picture = np.zeros((_ROWS * _HEIGHT, _COLUMNS * _WIDTH), np.uint8)
        for row, line in enumerate(lines[:_ROWS]):
            for column, letter in enumerate(line):
                if not letter.isspace():
                    top, left = row * _HEIGHT, column * _WIDTH
                    picture[top : top + _HEIGHT, left : left + _WIDTH] = _drawn(letter)
        return np.repeat(picture[..., np.newaxis], 3, axis=2)


def _parts(line: str) -> list[str]:
    return textwrap.wrap(line, _COLUMNS, drop_whitespace=False, replace_whitespace=False) or [""]


@lru_cache(maxsize=1024)
def _drawn(letter: str) -> np.ndarray:
    """[_HEIGHT, _WIDTH] uint8."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415  an extra

    image = Image.new("L", (_WIDTH, _HEIGHT))
    middle = (_WIDTH / 2, _HEIGHT / 2)
    ImageDraw.Draw(image).text(middle, letter, fill=255, font=ImageFont.load_default(_FONT_SIZE), anchor="mm")
    return np.asarray(image)
