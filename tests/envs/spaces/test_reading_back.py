import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from sf.envs import UsageError
from sf.envs.spaces.observations import ObsWriter, obs_arrays
from sf.envs.spaces.reading_back import action_encoder, obs_reader

OBSERVATIONS = [
    spaces.Box(-5, 5, (3,), np.float32),
    spaces.Box(-5, 5, (2, 3), np.float64),
    spaces.Box(0, 255, (4, 5, 3), np.uint8),
    spaces.Box(-1.0, 1.0, (), np.float32),
    spaces.Discrete(4),
    spaces.Discrete(4, start=-2),
    spaces.MultiDiscrete([2, 3, 4]),
    spaces.MultiDiscrete([2, 3], start=[5, -1]),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.MultiBinary(5),
    spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 1, (2,), np.float32)]),
    spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(3)}), "c": spaces.Tuple([spaces.MultiBinary([2, 2])])}),
]


def flat(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [np.asarray(value)]


def assert_same(found, expected, **tolerance):
    for one, other in zip(flat(found), flat(expected), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.astype(float), other.astype(float), **tolerance)


@pytest.mark.parametrize("space", OBSERVATIONS, ids=str)
def test_what_the_writer_wrote_is_read_back(space):
    writer = ObsWriter("test", space)
    rows = obs_arrays(writer.space, 1)
    read = obs_reader(writer.env_space)
    space.seed(0)
    for _ in range(20):
        obs = space.sample()
        writer.write(obs, {key: list(array) for key, array in rows.items()}, 0)
        found = read({key: array[0] for key, array in rows.items()})
        assert_same(found, obs, rtol=1e-6)
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            assert space.contains(found)


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (spaces.Discrete(4), 4),
        (spaces.Discrete(4), 1.0),
        (spaces.MultiDiscrete([2, 3]), [1, 3]),
        (spaces.Box(0, 1, (2,), np.float32), [0.5]),
        (spaces.Box(0, 1, (2,), np.float32), [0.5, np.nan]),
        (spaces.Box(0, 1, (2,), np.float32), "left"),
        (spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)]), (1,)),
    ],
    ids=str,
)
def test_what_is_no_action_is_one_sentence(space: gym.Space, action):
    with pytest.raises(UsageError, match="return one that the space contains"):
        action_encoder(space)(action)
