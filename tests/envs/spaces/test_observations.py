from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from sf.envs.errors import UsageError
from sf.envs.spaces import space_json
from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.planes import Planes

Box, Discrete, Dict = gym.spaces.Box, gym.spaces.Discrete, gym.spaces.Dict


def _rows(writer: ObsWriter, num_actors: int = 1) -> dict[str, list[np.ndarray]]:
    return {key: list(np.zeros((num_actors, *box.shape), box.dtype)) for key, box in writer.space.items()}


def test_nested_keys_are_joined_and_every_leaf_becomes_a_box() -> None:
    writer = ObsWriter(
        "env",
        Dict(
            image=Box(0, 255, (8, 9, 3), np.uint8),
            body=Dict(speed=Box(-1, 1, (), np.float64), gear=Discrete(3, start=1)),
        ),
    )
    shapes = {key: (box.shape, box.dtype) for key, box in writer.space.items()}
    assert shapes == {
        "image": ((8, 9, 3), np.uint8),
        "body/speed": ((1,), np.float64),
        "body/gear": ((3,), np.float32),
    }
    rows = _rows(writer)
    writer.write({"image": np.full((8, 9, 3), 5, np.uint8), "body": {"speed": 0.5, "gear": 3}}, rows, 0)
    assert (rows["image"][0] == 5).all()
    assert rows["body/speed"][0].tolist() == [0.5]
    assert rows["body/gear"][0].tolist() == [0.0, 0.0, 1.0]
    writer.check_bounds(rows, 0)


@pytest.mark.parametrize(
    ("dtype", "stored", "numbers"),
    [
        (np.float64, np.float64, [1_764_381_600.5, 1_764_381_601]),
        (np.float16, np.float32, [0, 1]),
        (np.int64, np.int64, [2**62, 2**62 + 1]),
        (np.int8, np.int8, [0, 1]),
        (bool, np.uint8, [0, 1]),
    ],
)
def test_numbers_keep_their_digits(dtype: type, stored: type, numbers: list[float]) -> None:
    writer = ObsWriter("env", Box(min(numbers), max(numbers), (2,), dtype))
    assert writer.space["obs"].dtype == stored
    rows = _rows(writer)
    writer.write(np.array(numbers, dtype), rows, 0)
    assert rows["obs"][0].tolist() == numbers
    writer.check_bounds(rows, 0)


def test_a_batch_is_written_row_by_row() -> None:
    writer = ObsWriter("env", Dict(a=Discrete(4), b=Box(-9, 9, (2,), np.float32)))
    rows = _rows(writer, 3)
    writer.write_batch({"a": np.array([0, 3, 1]), "b": np.arange(6, dtype=np.float32).reshape(3, 2)}, rows)
    assert [int(row.argmax()) for row in rows["a"]] == [0, 3, 1]
    assert [row.tolist() for row in rows["b"]] == [[0, 1], [2, 3], [4, 5]]


def test_parts_that_no_network_reads_are_left_out_and_remarked_once(caplog: pytest.LogCaptureFixture) -> None:
    words, image = gym.spaces.Text(5), Box(0, 255, (2, 2, 3), np.uint8)
    writer = ObsWriter("env", Dict(image=image, task=Dict(words=words), rest=gym.spaces.Tuple((words, Discrete(2)))))
    assert set(writer.space) == {"image", "rest/1"}
    sentences = [record.getMessage() for record in caplog.records]
    assert len(sentences) == 1
    assert "does not see 'task/words' (Text) and 'rest/0' (Text)" in sentences[0]


def test_a_writer_of_what_is_left_reads_the_same_observations(caplog: pytest.LogCaptureFixture) -> None:
    obs = {"n": 1, "rest": ("words", 1), "words": "go"}
    space = Dict(n=Discrete(2), rest=gym.spaces.Tuple((gym.spaces.Text(5), Discrete(2))), words=gym.spaces.Text(5))
    writer = ObsWriter("env", space)
    caplog.clear()
    again = ObsWriter("env", space_json.from_json(space_json.to_json(writer.env_space)))
    assert again.space == writer.space
    assert not caplog.records
    rows = _rows(again)
    again.write(obs, rows, 0)
    assert {key: row[0].tolist() for key, row in rows.items()} == {"n": [0, 1], "rest/1": [0, 1]}


@pytest.mark.parametrize(
    ("space", "came", "row"),
    [
        (gym.spaces.MultiBinary(3), np.array([True, False, True]), [1, 0, 1]),
        (gym.spaces.MultiBinary(3), np.array([1, 0, 1], np.int8), [1, 0, 1]),
        (gym.spaces.MultiDiscrete([3, 2], start=[0, 5]), np.array([2, 5]), [0, 0, 1, 1, 0]),
        (gym.spaces.MultiDiscrete([3, 2], start=[0, 5]), np.array([2, 5], np.uint64), [0, 0, 1, 1, 0]),
        (Planes(1, 2, 1), np.ones((1, 2, 1), np.float32), [[[1], [1]]]),
    ],
)
def test_each_kind_of_space_has_its_row(space: gym.Space, came: np.ndarray, row: list) -> None:
    writer = ObsWriter("env", space)
    rows = _rows(writer)
    writer.write(came, rows, 0)
    assert rows["obs"][0].tolist() == row
    assert isinstance(writer.space["obs"], Planes) == isinstance(space, Planes)


def test_a_tuple_is_a_dict_with_its_indices_as_keys() -> None:
    writer = ObsWriter("env", gym.spaces.Tuple((Discrete(2), Dict(a=Box(0, 9, (2,), np.int64)))))
    rows = _rows(writer)
    writer.write((1, {"a": np.array([3, 4])}), rows, 0)
    assert {key: row[0].tolist() for key, row in rows.items()} == {"0": [0.0, 1.0], "1/a": [3, 4]}


@pytest.mark.parametrize(
    ("space", "wrong"),
    [
        (gym.spaces.MultiDiscrete([3, 2]), [np.array(came) for came in ([3, 0], [0, -1], [0], [0.0, 1.0])]),
        (gym.spaces.MultiDiscrete([3, 2], start=[0, 5]), [np.array([2**63, 5], np.uint64)]),
        (Discrete(3), [-1, 3, 1.0, np.nan, np.array([1]), None]),
        (Box(0, 255, (2,), np.uint8), [np.array([0.5, 0.7])]),  # floats are not cut to integers
        (Dict(a=Dict(b=Discrete(2))), [{}, {"a": {}}, {"a": {"c": 0}}, {"a": None}]),
    ],
)
def test_what_is_not_in_its_space_is_named(space: gym.Space, wrong: list) -> None:
    writer = ObsWriter("env", space)
    for came in wrong:
        with pytest.raises(UsageError, match=r"^env: observation '(obs|a/b)'"):
            writer.write(came, _rows(writer), 0)


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (gym.spaces.Text(5), "Text.*TransformObservation"),
        (gym.spaces.Tuple((gym.spaces.Text(5),)), "Text.*TransformObservation"),
        (Dict({"a/b": Box(0, 1, (1,)), "a": Dict(b=Box(0, 1, (1,)))}), "'a/b'"),
        (Dict({0: Discrete(2)}), "key 0"),
        (gym.spaces.Tuple([Discrete(2), Dict({0: Discrete(2)})]), "key 0"),
        (Discrete(10**9), "1,000,000,000 choices"),
        (gym.spaces.MultiDiscrete([10**9, 3]), "1,000,000,003 choices"),
    ],
)
def test_a_space_that_no_row_can_hold_is_refused(space: gym.Space, named: str) -> None:
    with pytest.raises(UsageError, match=f"^env: .*{named}"):
        ObsWriter("env", space)
