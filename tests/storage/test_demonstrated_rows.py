"""Minari data sets as rows of a learner, and what is no such data set."""

import json

import gymnasium as gym
import numpy as np
import pytest

from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.envs.spaces.observations import ObsWriter
from sf.storage.demonstrations import minari_set
from sf.storage.demonstrations.demonstrated_rows import DemonstratedRows, convert
from sf.storage.demonstrations.minari_set import MinariEpisode, MinariSet

SEEN = gym.spaces.Dict(
    place=gym.spaces.Discrete(4, start=1),
    picture=gym.spaces.Box(0, 255, (40, 40), np.uint8),  # Minari would make a JPEG of it
    action_mask=gym.spaces.MultiBinary(5),
)
DONE = gym.spaces.MultiDiscrete([3, 2])
SPEC = EnvSpec(ObsWriter("env", SEEN).space, DONE, env_obs_space=SEEN)
ALLOWED = [[1, 1, 0, 1, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]


def episode(num_steps=2, terminated=True, seed=0):
    rng = np.random.default_rng(seed)
    ends = np.arange(num_steps) == num_steps - 1
    seen = {
        "place": rng.integers(1, 5, num_steps + 1),
        "picture": rng.integers(0, 256, (num_steps + 1, 40, 40), np.uint8),
        "action_mask": np.array(ALLOWED[: num_steps + 1], np.int8),
    }
    done = np.array([[1, 0], [2, 1], [0, 1]][:num_steps])
    return MinariEpisode(seen, done, rng.normal(size=num_steps), ends & terminated, ends & (not terminated))


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))

    def write_set(*episodes, name="group/set-v0", seen=SEEN, done=DONE):
        return minari_set.write(name, seen, done, episodes, {"algorithm_name": "by hand"})

    return write_set


def rows_of(tmp_path, *names):
    convert([MinariSet(name) for name in names], "env", SPEC, tmp_path / "rows", lambda done, total: None)
    return DemonstratedRows(tmp_path / "rows")


def test_the_episodes_of_data_sets_are_rows_behind_each_other_with_the_final_observation_of_each(write, tmp_path):
    first, second, third = episode(2), episode(3, terminated=False, seed=1), episode(1, seed=2)
    write(first, second)
    other = write(third, name="other-v3")
    rows = rows_of(tmp_path, "group/set-v0", str(other))
    arrays = rows.arrays
    assert rows.starts.tolist() == [0, 3, 7, 9]
    assert arrays["first"].nonzero()[0].tolist() == [0, 3, 7]
    assert (~arrays["valid"]).nonzero()[0].tolist() == [2, 6, 8]
    assert arrays["terminated"].nonzero()[0].tolist() == [1, 7]
    assert arrays["discrete"].tolist() == [[1, 0], [2, 1], [0, 0], [1, 0], [2, 1], [0, 1], [0, 0], [1, 0], [0, 0]]
    seen = [each.observations for each in (first, second, third)]
    np.testing.assert_array_equal(arrays["obs/picture"], np.concatenate([each["picture"] for each in seen]))
    places = np.concatenate([each["place"] for each in seen])
    np.testing.assert_array_equal(arrays["obs/place"].argmax(-1) + 1, places)
    np.testing.assert_array_equal(arrays["obs/action_mask"][:3], ALLOWED[:3])
    np.testing.assert_allclose(arrays["reward"][3:6], second.rewards, rtol=1e-6)


def test_minari_itself_reads_what_is_written(write):
    minari = pytest.importorskip("minari")
    write(episode(2))
    (found,) = minari.load_dataset("group/set-v0").iterate_episodes()
    np.testing.assert_array_equal(found.observations["picture"], episode(2).observations["picture"])
    assert found.terminations.tolist() == [False, True]


def spoiled(name, values):
    return episode(2)._replace(**{name: values})


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (spoiled("rewards", np.array([1.0, np.nan])), "reward has NaN"),
        (spoiled("terminations", np.array([False, False])), "cut short"),
        (spoiled("terminations", np.array([True, True])), "goes on after its end"),
        (spoiled("actions", np.array([[2, 0], [2, 1]])), "forbids the action 2"),
        (spoiled("actions", np.array([[1, 0], [2, 2]])), "is not in"),
        (spoiled("actions", np.array([[1, 0]])), "1 actions where 2 belong"),
        (spoiled("observations", {**episode(2).observations, "place": np.array([1, 5, 1])}), "place"),
    ],
)
def test_an_episode_that_cannot_be_trained_on_is_named_and_nothing_is_kept(write, tmp_path, found, word):
    write(episode(3), found)
    with pytest.raises(UsageError, match=rf"set-v0, episode 1: .*{word}"):
        rows_of(tmp_path, "group/set-v0")
    assert [path.name for path in tmp_path.iterdir()] == ["sets"]


def test_a_data_set_of_other_spaces_is_refused_but_one_with_more_observations_is_not(write, tmp_path):
    more = gym.spaces.Dict({**SEEN.spaces, "mission": gym.spaces.Text(8)})
    told = {**episode(2).observations, "mission": ["go", "on", "now"]}
    write(episode(2)._replace(observations=told), seen=more)
    assert rows_of(tmp_path, "group/set-v0").num_rows == 3
    unmasked = gym.spaces.Dict({key: space for key, space in SEEN.items() if key != "action_mask"})
    seen = {key: rows for key, rows in episode(2).observations.items() if key != "action_mask"}
    write(episode(2)._replace(observations=seen), name="unmasked-v0", seen=unmasked)
    write(episode(2), name="wide-v0", done=gym.spaces.MultiDiscrete([3, 3]))
    for name in ("unmasked-v0", "wide-v0"):
        with pytest.raises(UsageError, match=name):
            rows_of(tmp_path, name)


def test_a_damaged_data_set_is_refused_and_none_makes_the_environment_that_it_names(write, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="minari download missing-v0"):
        MinariSet("missing-v0")
    directory = write(episode(2)) / "data"
    content = (directory / "main_data.hdf5").read_bytes()
    (directory / "main_data.hdf5").write_bytes(content[: len(content) // 2])
    with pytest.raises(UsageError, match="cut short"):
        rows_of(tmp_path, "group/set-v0")
    (directory / "main_data.hdf5").write_bytes(content)
    told = json.loads((directory / "metadata.json").read_text())
    (directory / "metadata.json").write_text(json.dumps({**told, "total_steps": 3}))
    with pytest.raises(UsageError, match="damaged"):
        rows_of(tmp_path, "group/set-v0")
    monkeypatch.setattr(gym, "make", lambda *args, **kwargs: pytest.fail("the environment is made"))
    del told["observation_space"]
    env_spec = gym.envs.registration.EnvSpec("Evil-v0", entry_point="evil_module:Env")
    (directory / "metadata.json").write_text(json.dumps({**told, "env_spec": env_spec.to_json()}))
    with pytest.raises(UsageError, match="does not say what its observations"):
        MinariSet("group/set-v0")
