import gymnasium as gym
import numpy as np
import pytest

from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.symbol_grids import GridShape, codes, grid_shape, is_symbols


def box(high, shape, dtype=np.uint8, low=0):
    return gym.spaces.Box(low, high, shape, dtype)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (box(255, (7, 7, 3)), True),  # MiniGrid, which declares no bounds of its own
        (box(5976, (21, 79), np.int16), True),  # NetHack's glyphs
        (box(10, (64, 64, 3)), True),  # eleven kinds of cells are no brightness
        (box(4, (3, 8, 8), np.int64, low=-4), True),
        (box(1, (10, 10, 4)), True),  # planes of two values
        (box(255, (64, 64, 3)), False),  # a photograph
        (box(1, (84, 84, 1)), False),  # a picture in black and white
        (box(1, (6, 7, 2), np.int8), True),  # PettingZoo's connect four
        (box(1, (6, 7), np.int8), False),
        (box(255, (256,)), False),  # a line of text
        (box(9, (1, 12), np.int64), False),
        (box(2**31 - 2, (8, 8), np.int64), False),  # no table has a row for each
        (gym.spaces.Box(0.0, 10.0, (7, 7, 3), np.float32), False),
    ],
)
def test_numbers_and_size_say_whether_integers_are_symbols(space, expected):
    assert is_symbols(space) == expected


def test_planes_of_older_policies_are_of_bytes_and_codes_of_any_type():
    for dtype, expected in ((np.uint8, True), (np.int8, False), (np.int64, False)):
        assert is_symbols(box(1, (6, 7, 2), dtype), any_planes=False) == expected
    assert is_symbols(box(4, (3, 8, 8), np.int64, low=-4), any_planes=False)


def test_channels_are_at_the_end_at_the_beginning_or_missing():
    assert grid_shape((7, 9, 3)) == GridShape(3, 7, 9, channels_trail=True, has_channels=True)
    assert grid_shape((3, 7, 9)) == GridShape(3, 7, 9, channels_trail=False, has_channels=True)
    assert grid_shape((21, 79)) == GridShape(1, 21, 79, channels_trail=True, has_channels=False)


def test_codes_are_counted_from_the_lowest_to_the_highest():
    assert codes(box(4, (3, 8, 8), np.int64, low=-4)) == (-4, 9)
    assert codes(box(2**31 - 1, (8, 8), np.int32, low=-(2**31))) == (-(2**31), 2**32)


def test_a_multi_discrete_of_rows_and_columns_is_a_grid_of_symbols():
    space = gym.spaces.MultiDiscrete([[3, 4], [5, 6]], start=[[0, 0], [1, 0]])
    writer = ObsWriter("env", space)
    assert is_symbols(writer.space["obs"])
    rows = {"obs": [np.zeros((2, 2), np.int64)]}
    writer.write(np.array([[2, 3], [5, 5]]), rows, 0)
    assert rows["obs"][0].tolist() == [[2, 3], [5, 5]]
