"""The column beside the picture that tells a person which key does what, and what the game says."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sf.screen.overlay import BACKGROUND, FONT_SIZE, TEXT, TITLE, fitting, font

WIDTH = 340  # pixels
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
    """[height, WIDTH, 3] uint8. lines, footer: tuples. What there is no room for is left out, the last lines first."""
    from PIL import Image, ImageDraw  # noqa: PLC0415  an extra

    image = Image.new("RGB", (WIDTH, height), BACKGROUND)
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
        draw.text((_NAMES_AT, y), fitting(line.name, WIDTH - _NAMES_AT - 8), fill=colour, font=font(FONT_SIZE))
    for n, text in enumerate(footer):
        draw.text((8, bottom + n * _LINE), text, fill=TEXT, font=font(FONT_SIZE))
    return np.asarray(image)
