from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

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


def test_the_largest_float64_as_a_bound_means_no_bound() -> None:
    limit = np.finfo(np.float64).max
    assert not ObsWriter("env", Box(-limit, limit, (2,), np.float64)).space["obs"].is_bounded()


def test_a_batch_is_written_row_by_row() -> None:
    writer = ObsWriter("env", Dict(a=Discrete(4), b=Box(-9, 9, (2,), np.float32)))
    rows = _rows(writer, 3)
    writer.write_batch({"a": np.array([0, 3, 1]), "b": np.arange(6, dtype=np.float32).reshape(3, 2)}, rows)
    assert [int(row.argmax()) for row in rows["a"]] == [0, 3, 1]
    assert [row.tolist() for row in rows["b"]] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("came", [np.array([1, 0, 1], np.int8), np.array([True, False, True])])
def test_a_multi_binary_is_a_row_of_small_integers(came: np.ndarray) -> None:
    writer = ObsWriter("env", gym.spaces.MultiBinary(3))
    rows = _rows(writer)
    writer.write(came, rows, 0)
    assert writer.space["obs"] == Box(0, 1, (3,), np.int8)
    assert rows["obs"][0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("space", [gym.spaces.Text(5), gym.spaces.Tuple((gym.spaces.Text(5),))])
def test_a_space_that_no_network_reads_is_named_with_a_wrapper_that_helps(space: gym.Space) -> None:
    with pytest.raises(
        ValueError, match=r"env: its observation space .*Text.* has nothing that .*TransformObservation"
    ):
        ObsWriter("env", space)


def test_a_tuple_is_a_dict_with_its_indices_as_keys() -> None:
    writer = ObsWriter("env", gym.spaces.Tuple((Discrete(2), Dict(a=Box(0, 9, (2,), np.int64)))))
    rows = _rows(writer)
    writer.write((1, {"a": np.array([3, 4])}), rows, 0)
    assert {key: row[0].tolist() for key, row in rows.items()} == {"0": [0.0, 1.0], "1/a": [3, 4]}


def test_a_multi_discrete_is_the_one_hots_of_its_numbers_in_a_row() -> None:
    writer = ObsWriter("env", gym.spaces.MultiDiscrete([3, 2], start=[0, 5]))
    rows = _rows(writer)
    writer.write(np.array([2, 5]), rows, 0)
    assert rows["obs"][0].tolist() == [0, 0, 1, 1, 0]


def test_a_multi_discrete_may_come_in_any_kind_of_integers() -> None:
    writer = ObsWriter("env", gym.spaces.MultiDiscrete([3, 2], start=[0, 5]))
    for dtype in (np.uint8, np.int16, np.uint64):
        rows = _rows(writer)
        writer.write(np.array([2, 5], dtype), rows, 0)
        assert rows["obs"][0].tolist() == [0, 0, 1, 1, 0]
    with pytest.raises(ValueError, match=r"observation 'obs' came as .*, but its space is"):
        writer.write(np.array([2**63, 5], np.uint64), _rows(writer), 0)


@pytest.mark.parametrize("came", [[3, 0], [0, -1], [0], [0.0, 1.0]])
def test_what_is_outside_of_a_multi_discrete_is_named(came: list[float]) -> None:
    writer = ObsWriter("env", gym.spaces.MultiDiscrete([3, 2]))
    with pytest.raises(ValueError, match=r"observation 'obs' came as .*, but its space is"):
        writer.write(np.array(came), _rows(writer), 0)


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


def test_two_keys_that_are_joined_to_the_same_name_are_refused() -> None:
    space = Dict({"a/b": Box(0, 1, (1,)), "a": Dict(b=Box(0, 1, (1,)))})
    with pytest.raises(ValueError, match="two observations are named 'a/b'"):
        ObsWriter("env", space)


@pytest.mark.parametrize("came", [{}, {"a": {}}, {"a": {"c": 0}}, {"a": None}])
def test_a_missing_key_is_named(came: object) -> None:
    writer = ObsWriter("env", Dict(a=Dict(b=Discrete(2))))
    with pytest.raises(ValueError, match="env: observation 'a/b' is in the observation space, but not"):
        writer.write(came, _rows(writer), 0)


@pytest.mark.parametrize("came", [-1, 3])
def test_a_choice_outside_of_a_discrete_space_is_named(came: int) -> None:
    writer = ObsWriter("env", Discrete(3))
    with pytest.raises(ValueError, match=f"observation 'obs' came as {came}, but its space is 0 to 2"):
        writer.write(came, _rows(writer), 0)


@pytest.mark.parametrize("came", [1.0, np.nan, np.array([1]), None])
def test_what_is_not_one_integer_is_no_choice(came: object) -> None:
    writer = ObsWriter("env", Discrete(3))
    with pytest.raises(ValueError, match=r"observation 'obs' came as .*, but its space is 0 to 2: return one whole"):
        writer.write(came, _rows(writer), 0)


@pytest.mark.parametrize("space", [Dict({0: Discrete(2)}), gym.spaces.Tuple([Discrete(2), Dict({0: Discrete(2)})])])
def test_a_key_that_is_no_text_is_named(space: gym.Space) -> None:
    with pytest.raises(
        ValueError, match=r"env: .* a Dict with the key 0: name keys by text, such as '0', there and in"
    ):
        ObsWriter("env", space)


@pytest.mark.parametrize("space", [Discrete(10**9), gym.spaces.MultiDiscrete([10**9, 3])])
def test_more_choices_than_a_row_can_hold_are_refused(space: gym.Space) -> None:
    with pytest.raises(ValueError, match=r"env: observation 'obs' is one of 1,000,000,00. choices.* as a MultiDisc"):
        ObsWriter("env", space)


def test_floats_are_not_cut_to_integers() -> None:
    writer = ObsWriter("env", Box(0, 255, (2,), np.uint8))
    with pytest.raises(ValueError, match="came as float64"):
        writer.write(np.array([0.5, 0.7]), _rows(writer), 0)


def test_planes_stay_planes() -> None:
    writer = ObsWriter("env", gym.spaces.Dict({"board": Planes(2, 3, 4)}))
    assert isinstance(writer.space["board"], Planes)
    rows = _rows(writer)
    writer.write({"board": np.ones((2, 3, 4), np.float32)}, rows, 0)
    assert rows["board"][0].sum() == 24
