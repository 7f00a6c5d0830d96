import numpy as np
import pytest

from sf.envs.doom.view import FRAME_SHAPE, shrink


def shrink_reference(screen: np.ndarray) -> np.ndarray:
    height, width, _ = FRAME_SHAPE
    frame = np.empty(FRAME_SHAPE, np.uint8)
    for i in range(height):
        for j in range(width):
            frame[i, j] = screen[int(i * 120 / height), int(j * 160 / width)]
    return frame


def test_shrink_takes_the_nearest_pixel_by_the_floor_convention():
    screen = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    frame = np.zeros(FRAME_SHAPE, np.uint8)
    shrink(screen, frame)
    np.testing.assert_array_equal(frame, shrink_reference(screen))


def test_shrink_writes_into_a_row_of_a_larger_array_and_nowhere_else():
    rows = np.full((3, *FRAME_SHAPE), 7, np.uint8)
    shrink(np.zeros((120, 160, 3), np.uint8), rows[1])
    assert rows[1].max() == 0
    assert (rows[[0, 2]] == 7).all()


def test_shrink_refuses_a_destination_that_is_not_contiguous():
    frame = np.zeros((128, 72, 3), np.uint8).transpose(1, 0, 2)
    with pytest.raises(ValueError, match="contiguous"):
        shrink(np.zeros((120, 160, 3), np.uint8), frame)
