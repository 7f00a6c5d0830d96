import json

import gymnasium as gym
import numpy as np
import pytest

from sf.envs.errors import UsageError
from sf.envs.spaces import space_json
from sf.envs.spaces.planes import Planes

BOX = gym.spaces.Box


@pytest.mark.parametrize(
    "space",
    [
        BOX(0, 255, (84, 84, 4), np.uint8),
        BOX(-np.inf, np.inf, (3,), np.float64),
        BOX(np.array([-1.0, 0.1], np.float32), np.array([1.0, np.inf], np.float32)),
        BOX(0.0, 1.0, ()),
        Planes(5, 6, 7),
        Planes(5, 6, 7, 0.1),
        gym.spaces.Discrete(5),
        gym.spaces.Discrete(5, start=-2),
        gym.spaces.MultiDiscrete([3, 2]),
        gym.spaces.MultiDiscrete([[3, 2], [4, 5]]),
        gym.spaces.MultiBinary(3),
        gym.spaces.MultiBinary([3, 2]),
        gym.spaces.Dict({"a": BOX(0, 1, (2,)), "b": gym.spaces.Dict({"c": gym.spaces.Discrete(2)})}),
        gym.spaces.Tuple([gym.spaces.Discrete(3), BOX(-2.5, 2.5, (1,))]),
    ],
    ids=str,
)
def test_a_space_survives_being_written_as_json(space):
    read = space_json.from_json(json.loads(json.dumps(space_json.to_json(space))))
    assert read == space
    assert type(read) is type(space)


def test_equal_bounds_take_one_number_and_other_spaces_are_refused():
    assert space_json.to_json(BOX(0, 255, (84, 84, 4), np.uint8))["high"] == 255
    with pytest.raises(UsageError, match="Graph"):
        space_json.to_json(gym.spaces.Graph(BOX(0, 1, (2,)), None))


def test_planes_in_other_steps_are_another_space():
    assert Planes(5, 6, 7) != Planes(5, 6, 7, 0.1) != Planes(5, 6, 7, 0.2)
    assert space_json.from_json({"type": "Planes", "shape": [5, 6, 7]}) == Planes(5, 6, 7)  # as files of before have it
    for step in (0, -0.1, float("inf"), float("nan")):
        with pytest.raises(UsageError, match=f"is {step}"):
            Planes(5, 6, 7, step)
    assert space_json.to_json(Planes(5, 6, 7)) == {"type": "Planes", "shape": [5, 6, 7]}  # runs are compared by it
