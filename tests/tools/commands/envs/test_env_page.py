"""`sf-envs NAME`, where one environment has that name: what is said of it."""

import json
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from moving_env import Moving

from sf import envs
from sf.envs import EnvOptions
from sf.envs.custom.registered import registered
from sf.envs.entries import entry_of_envs
from sf.tools.commands.envs import command
from sf.tools.commands.envs.page import play_randomly

SECONDS = "0.05"


class Talking(gym.Env):
    """Its rewards are `reward`, its episodes 4 steps long."""

    observation_space = gym.spaces.Dict(place=gym.spaces.Discrete(3), words=gym.spaces.Text(5))
    action_space = gym.spaces.Discrete(2)
    reward = 0.5
    is_closed = False

    def reset(self, *, seed=None, options=None):
        self._num_steps = 0
        return {"place": 1, "words": "hi"}, {}

    def step(self, action):
        self._num_steps += 1
        return {"place": 2, "words": "ho"}, self.reward, self._num_steps == 4, False, {}

    def close(self):
        type(self).is_closed = True


@pytest.fixture
def talking(monkeypatch):
    """A class of its own for each test, under the name `talking`."""

    class Env(Talking):
        pass

    monkeypatch.setitem(registered, "talking", None)
    envs.register_env("talking", Env)
    return Env


def run(capsys, *args, status=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sf-envs", *args])
        if status:
            with pytest.raises(SystemExit, match=f"^{status}$"):
                command.main()
        else:
            command.main()
    return capsys.readouterr().out


def page(capsys, *args, status=0):
    (found,) = json.loads(run(capsys, *args, "--json", status=status))
    return found


@pytest.mark.usefixtures("talking")
def test_all_about_one_environment(capsys):
    found = page(capsys, "talking", "--seconds", SECONDS)
    assert found["obs"] == {"place": {"shape": [3], "dtype": "float32"}}
    assert found["env_obs"] == "Dict(place: Discrete(3))"
    assert found["remarks"] == [
        "talking: the policy does not see 'words' (Text) of the observation: no network reads it"
    ]
    assert found["adapted"] == ["Discrete observations: one-hot"]
    assert (found["layers"], found["preset"]) == (["Env"], "vector")
    play = found["random_play"]
    assert (play["mean_return"], play["mean_length"]) == (2.0, 4.0)
    assert play["num_episodes"] > 0
    assert play["frames_per_s"] == play["steps_per_s"] > 0
    text = run(capsys, "talking", "--seconds", SECONDS)
    assert "mean return of 2" in text
    assert "to know      talking: the policy does not see 'words'" in text


def test_the_answer_is_that_of_a_run_with_the_same_flags(capsys):
    flat = ["--env_wrappers", "gymnasium.wrappers:FlattenObservation"]
    flags = [*flat, "--env_kwargs", '{"map_name": "8x8"}', "--env_frameskip", "2"]
    found = page(capsys, "FrozenLake-v1", *flags, "--seconds", SECONDS)
    assert found["obs"]["obs"]["shape"] == [64]
    assert found["frameskip"] == 2
    assert found["layers"][0] == "FlattenObservation"
    assert found["random_play"]["frames_per_s"] == 2 * found["random_play"]["steps_per_s"]
    last = run(capsys, "FrozenLake-v1", *flags, "--seconds", "0").splitlines()[-1]
    assert last.split(maxsplit=1)[1].startswith('sf-train --env FrozenLake-v1 --env_kwargs \'{"map_name": "8x8"}\'')


def test_what_is_adapted_has_its_name(capsys, talking, monkeypatch):
    class Old:
        observation_space, action_space = gym.spaces.Box(0, 1, (2,)), gym.spaces.Discrete(2)

        def reset(self):
            return np.zeros(2, np.float32)

        def step(self, action):
            return np.zeros(2, np.float32), 0.0, True, {}

    monkeypatch.setitem(registered, "old", entry_of_envs(Old))
    found = page(capsys, "old", "--seconds", SECONDS)
    assert found["layers"] == ["OldApiEnv", "Old"]
    assert "gym before 0.26" in found["adapted"][0]
    talking.observation_space = gym.spaces.MultiDiscrete([[3, 3], [3, 3]])
    found = page(capsys, "talking", "--seconds", "0", status=2)  # what it returns is of another shape
    assert found["obs"]["obs"]["shape"] == [2, 2]
    assert found["adapted"] == []  # several axes are no one-hot


def test_it_is_not_stepped_for_no_seconds(capsys, talking, monkeypatch):
    monkeypatch.setattr(talking, "step", None)
    assert page(capsys, "talking", "--seconds", "0")["random_play"] is None
    assert "random play" not in run(capsys, "talking", "--seconds", "0")


def test_what_goes_wrong_in_its_steps_is_said_before_a_run_starts(capsys, talking, monkeypatch):
    for reward, said in ((np.array([1.0, -1.0]), "weighted sum"), (float("nan"), "is nan")):
        monkeypatch.setattr(talking, "reward", reward)
        found = page(capsys, "talking", "--seconds", SECONDS, status=2)
        assert said in found["random_play_error"]
    assert "failed: " in run(capsys, "talking", "--seconds", SECONDS, status=2)
    assert talking.is_closed


def test_ctrl_c_ends_it_quietly_and_closes_the_environment(capsys, talking, monkeypatch):
    def interrupted(self, action):
        raise KeyboardInterrupt

    monkeypatch.setattr(talking, "step", interrupted)
    with pytest.raises(SystemExit) as end:
        run(capsys, "talking")
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "")
    assert talking.is_closed


def ended(capsys, *args):
    """Its status, standard output and standard error."""
    with pytest.raises(SystemExit) as end:
        run(capsys, *args)
    return end.value.code, *capsys.readouterr()


def test_one_that_cannot_be_made_says_why_and_ends_as_training_on_it_would(capsys, talking, monkeypatch):
    wrong = ["FrozenLake-v1", "--env_kwargs", '{"map": 1}']
    status, out, err = ended(capsys, *wrong)
    assert (status, out) == (2, "")
    assert err.startswith("error: FrozenLake-v1: ")
    assert "unexpected keyword argument 'map'" in err
    status, out, err = ended(capsys, *wrong, "--json")
    assert (status, err) == (2, "")
    assert "unexpected keyword argument 'map'" in json.loads(out)[0]["error"]
    monkeypatch.setattr(talking, "reset", None)
    monkeypatch.setattr(talking, "__init__", lambda self: {}["door"])
    assert ended(capsys, "talking") == (1, "", "error: talking: KeyError: 'door'\n")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["toy_bandit", "--seconds", "-1"], "seconds is -1"),
        (["toy_bandit", "--env_kwargs", "{"], "env_kwargs is not JSON"),
        (["--installed", "--family", "toy"], "--installed"),
    ],
)
def test_wrong_flags_end_it_with_status_2(capsys, flags, sentence):
    with pytest.raises(SystemExit) as end:
        run(capsys, *flags)
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_working_directory_is_the_same_after_an_environment_was_played(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(registered, "moving", entry_of_envs(Moving))
    play_randomly("moving", EnvOptions(), float(SECONDS))
    assert Path.cwd() == tmp_path
