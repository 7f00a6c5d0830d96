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
