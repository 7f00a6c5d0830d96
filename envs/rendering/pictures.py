"""Pictures of observations and of text, for environments that draw none themselves."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.spaces.observations import ObsWriter, channels_trail, is_image

_CELL = 24  # pixels
_COLUMNS = 16
_WIDEST_BOUND = 1e3  # a wider range says little of the numbers to expect
_LETTERS, _LINES = 64, 30  # letters of a picture
_LETTER_WIDTH, _LETTER_HEIGHT = 10, 17  # pixels of a letter
_FONT_SIZE = 13
_COLOURS = re.compile(r"\x1b\[[\d;]*m")  # for terminals
_SUITS = str.maketrans("♠♥♦♣", "SHDC")  # which Pillow's font lacks


class ObsPainter:
    """Draws the observations of one environment: the image among them, or else a cell for each number.

    An image is uint8 of rank 3. Of a stack of frames, the last is drawn.
    A number is black at the low end of its space and white at the high one; where that has no bounds, 0 is the middle.
    """

    def __init__(self, env_id: str, space: gym.Space) -> None:
        """Raises UsageError for a space that is not supported."""
        self._writer = ObsWriter(env_id, space)
        boxes: dict[str, Any] = dict(self._writer.space.items())
        self._rows = {key: [np.zeros(box.shape, box.dtype)] for key, box in boxes.items()}
        self._image = next((key for key, box in boxes.items() if is_image(box)), None)
        self._bounds = {
            key: (box.low.astype(np.float64), box.high.astype(np.float64) - box.low) for key, box in boxes.items()
        }

    def draw(self, obs: Any) -> np.ndarray:
        """Returns [H, W, 3] uint8 of an observation as the environment returns it."""
        self._writer.write(obs, self._rows, 0)
        if self._image is not None:
            return _as_rgb(self._rows[self._image][0])
        columns = min(_COLUMNS, max(rows[0].size for rows in self._rows.values()))
        return np.concatenate([self._cells(key, columns) for key in self._rows])

    def _cells(self, key: str, columns: int) -> np.ndarray:
        values = self._rows[key][0].astype(np.float64)
        low, width = self._bounds[key]
        with np.errstate(over="ignore", invalid="ignore"):
            share = np.where(width <= _WIDEST_BOUND, (values - low) / width, 0.5 + 0.5 * values / (1 + np.abs(values)))
        bright = np.nan_to_num(255 * share.clip(0, 1)).astype(np.uint8).ravel()
        cells = np.zeros((-(-bright.size // columns), columns), np.uint8)
        cells.flat[: bright.size] = bright
        picture = cells.repeat(_CELL, axis=0).repeat(_CELL, axis=1)
        picture[::_CELL] = picture[:, ::_CELL] = 64  # a grid, so that neighbours of one colour can be told apart
        return np.repeat(picture[..., np.newaxis], 3, axis=2)


def _as_rgb(image: np.ndarray) -> np.ndarray:
    """image: [H, W, C] or [C, H, W]."""
    if not channels_trail(image.shape):
        image = image.transpose(1, 2, 0)
    channels = image.shape[2]
    if channels % 3 == 0:
        return image[..., -3:].copy()
    return np.repeat(image[..., -1:] if channels != 4 else image[..., 3:], 3, axis=2)


class TextPainter:
    """Draws text in letters of one width, so that a board stays one, on pictures of one size."""

    def __init__(self, env_id: str) -> None:
        """Raises UsageError where Pillow is missing."""
        try:
            import PIL  # noqa: F401, PLC0415  an extra
        except ImportError as error:
            raise UsageError(f"{env_id} cannot be drawn: {error}: pip install 'pillow>=10.1'") from error

    def draw(self, text: str) -> np.ndarray:
        """Returns [H, W, 3] uint8 of as much as there is room for. Longer lines go on in the next one."""
        lines = [part for line in _COLOURS.sub("", text).translate(_SUITS).splitlines() for part in _parts(line)]
        picture = np.zeros((_LINES * _LETTER_HEIGHT, _LETTERS * _LETTER_WIDTH), np.uint8)
        for row, line in enumerate(lines[:_LINES]):
            for column, letter in enumerate(line):
                if not letter.isspace():
                    top, left = row * _LETTER_HEIGHT, column * _LETTER_WIDTH
                    picture[top : top + _LETTER_HEIGHT, left : left + _LETTER_WIDTH] = _drawn(letter)
        return np.repeat(picture[..., np.newaxis], 3, axis=2)


def _parts(line: str) -> list[str]:
    return textwrap.wrap(line, _LETTERS, drop_whitespace=False, replace_whitespace=False) or [""]


@lru_cache(maxsize=1024)
def _drawn(letter: str) -> np.ndarray:
    """Returns [_LETTER_HEIGHT, _LETTER_WIDTH] uint8."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415  an extra

    image = Image.new("L", (_LETTER_WIDTH, _LETTER_HEIGHT))
    middle = (_LETTER_WIDTH / 2, _LETTER_HEIGHT / 2)
    ImageDraw.Draw(image).text(middle, letter, fill=255, font=ImageFont.load_default(_FONT_SIZE), anchor="mm")
    return np.asarray(image)
