"""Text as pictures, in letters of one width."""

import numpy as np
import pytest

pytest.importorskip("PIL")

from sf.envs.rendering.pictures import TextPainter

PAINTER = TextPainter("a game")


def test_a_letter_looks_the_same_wherever_it_stands_and_all_pictures_have_one_size():
    picture = PAINTER.draw("a b\n\n  a")
    assert (picture.shape, picture.dtype) == ((510, 640, 3), np.uint8)
    first = picture[:17, :10]
    assert first.any()
    np.testing.assert_array_equal(first, picture[34:51, 20:30])
    assert not picture[17:34].any()
    assert not picture[:17, 10:20].any()


def test_a_long_line_goes_on_in_the_next_and_too_many_lines_are_cut():
    picture = PAINTER.draw("x" * 65)
    np.testing.assert_array_equal(picture[17:34, :10], picture[:17, :10])
    assert not picture[17:34, 10:].any()
    assert PAINTER.draw("x\n" * 100).shape == picture.shape
    np.testing.assert_array_equal(PAINTER.draw("\x1b[91ma\x1b[0m"), PAINTER.draw("a"))  # a colour for terminals
    np.testing.assert_array_equal(PAINTER.draw("\N{BLACK HEART SUIT} 7"), PAINTER.draw("H 7"))
